"""The program: its commands, and how it ends."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from relaymodel import __version__
from relaymodel.cli.certificate import certify
from relaymodel.cli.claims import reproduce
from relaymodel.cli.control import control
from relaymodel.cli.curves import exponent
from relaymodel.cli.fitting import fit
from relaymodel.cli.models import bound, influence, simulate
from relaymodel.cli.networks import measure
from relaymodel.cli.sweep import sweep
from relaymodel.cli.symbols import derive
from relaymodel.cli.training import train

WELCOME = f"""\
relaymodel {__version__}: how much does a transformer remember of its prompt?

Try one of these first:

  relaymodel influence                      how the prompt's influence decays, with its local exponent
  relaymodel derive --depth 2 --steps       the closed form, derived step by step
  relaymodel simulate --csv curve.csv       the recursion itself; then: relaymodel exponent curve.csv
  relaymodel measure untrained-numpy        the same on a real network, in a minute or so
  relaymodel reproduce --out report         the whole argument with figures, in about a minute

relaymodel --help lists all commands, relaymodel COMMAND --help explains one.
"""

UNUSABLE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # plain text, on a terminal as in a file
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for command in (derive, influence, sweep, simulate, exponent, fit, bound, control, measure, certify, train, reproduce):
    app.command()(command)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """How much does a transformer remember of its prompt?  The linear relay model, solved exactly."""
    if version:
        print(f"relaymodel {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(WELCOME, end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done.  1: a claim failed.  2: unusable input, with one line on standard error that says what is wrong, where,
    and what to do instead.  130: interrupted.  141: nobody reads the output any more.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Greek must not fail a report
    try:
        status = _run(sys.argv[1:] if arguments is None else list(arguments))
        _flush()
    except BrokenPipeError:
        status = BROKEN_PIPE
    except KeyboardInterrupt:
        below_the_bar = "\n" * sys.stderr.isatty()
        print(f"{below_the_bar}relaymodel: interrupted", file=sys.stderr)
        status = INTERRUPTED
    except (ValueError, TypeError, OSError, ArithmeticError, ImportError) as error:
        print(f"relaymodel: {_one_line(error)}", file=sys.stderr)
        status = UNUSABLE
    if status:
        _abandon_output()
    return status


def _run(arguments: list[str]) -> int:
    """Parse and execute; return the exit code, or raise what the command raised."""
    try:
        # not through the command's own main(), which has its own mind about errors and exit codes
        with typer.main.get_command(app).make_context("relaymodel", arguments) as context:
            context.command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        # a usage error, whose class has moved between versions of Typer
        if not hasattr(error, "format_message"):
            raise
        command_path = getattr(getattr(error, "ctx", None), "command_path", "relaymodel")
        raise ValueError(f"{error.format_message().rstrip('.')}; see {command_path} --help") from None
    return 0


def _one_line(error: Exception) -> str:
    """Return an error's message in one line, with the file first if the system names one."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename or 'cannot write'}: {error.strerror}"
    return " ".join(message.split()) or type(error).__name__


def _abandon_output() -> None:
    """Write what was printed; if that is impossible, keep the interpreter from trying once more, loudly, at its end."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush() -> None:
    if sys.stdout is not None:  # it is None where the program was started with it closed
        sys.stdout.flush()
