"""The relay model run position by position in float64: streamed, resumable, with prompt bias and reminders."""

from relaymodel.simulation.inputs import LogBias, ReminderSchedule
from relaymodel.simulation.recursion import Layout
from relaymodel.simulation.run import Simulation, simulate, stream
from relaymodel.simulation.state import SimulationState

__all__ = ["Layout", "LogBias", "ReminderSchedule", "Simulation", "SimulationState", "simulate", "stream"]
