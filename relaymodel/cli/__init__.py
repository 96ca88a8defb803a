"""The command line: one thin function per command, everything heavy imported inside it."""

from relaymodel.cli.app import app, main

__all__ = ["app", "main"]
