"""What stops the decay: a bias on the prompt's keys, reminders in the continuation (THEORY section 7)."""

from relaymodel.control.bias import ConstantShare, PromptBias

__all__ = ["ConstantShare", "PromptBias"]
