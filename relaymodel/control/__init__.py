"""What stops the decay: a bias on the prompt's keys, reminders in the continuation (THEORY section 7)."""

from relaymodel.control.limits import BiasLimit, bias_limit
from relaymodel.control.phases import PhaseDiagram, phase_diagram
from relaymodel.control.planner import ReminderPlan, plan_reminders
from relaymodel.control.reminders import (
    ReminderLimit,
    reminder_influence,
    reminder_limit,
)
from relaymodel.control.response import biased_influence
from relaymodel.control.turn import TurningPoint, turning_point

__all__ = [
    "BiasLimit",
    "PhaseDiagram",
    "ReminderLimit",
    "ReminderPlan",
    "TurningPoint",
    "bias_limit",
    "biased_influence",
    "phase_diagram",
    "plan_reminders",
    "reminder_influence",
    "reminder_limit",
    "turning_point",
]
