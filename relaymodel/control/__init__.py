"""What stops the decay: a bias on the prompt's keys, reminders in the continuation (THEORY section 7)."""

from relaymodel.control.bias import ConstantShare, PromptBias
from relaymodel.control.reminders import (
    ReminderBlocks,
    ReminderLimit,
    Reminders,
    reminder_influence,
    reminder_limit,
)

__all__ = [
    "ConstantShare",
    "PromptBias",
    "ReminderBlocks",
    "ReminderLimit",
    "Reminders",
    "reminder_influence",
    "reminder_limit",
]
