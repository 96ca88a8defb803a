"""The relay model run position by position in float64: streamed, resumable, with prompt bias and reminders."""

from relaymodel.simulation.bias import ConstantShare, PromptBias, plain_softmax, scalable_softmax
from relaymodel.simulation.inputs import LogBias, ReminderSchedule
from relaymodel.simulation.recursion import Layout
from relaymodel.simulation.reminders import EvenReminders, ReminderBlocks, Reminders
from relaymodel.simulation.run import Simulation, expected_seconds, simulate, stream
from relaymodel.simulation.share import ClampedShare, ShareRule, SplitSoftmax
from relaymodel.simulation.state import SimulationState
from relaymodel.simulation.weights import token_weights

__all__ = [
    "ClampedShare",
    "ConstantShare",
    "EvenReminders",
    "Layout",
    "LogBias",
    "PromptBias",
    "ReminderBlocks",
    "ReminderSchedule",
    "Reminders",
    "ShareRule",
    "Simulation",
    "SimulationState",
    "SplitSoftmax",
    "expected_seconds",
    "plain_softmax",
    "scalable_softmax",
    "simulate",
    "stream",
    "token_weights",
]
