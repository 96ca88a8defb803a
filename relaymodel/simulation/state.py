"""Where a simulation stands, and the file it waits in."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relaymodel import files
from relaymodel.checks import positive_integer, series, show
from relaymodel.model import RelayModel
from relaymodel.simulation.inputs import Floats, convolves
from relaymodel.simulation.recursion import Layout


@dataclass(frozen=True, eq=False)
class SimulationState:
    """A simulation after its first t continuation tokens: all that is needed to go on as if it had not stopped.

    Parameters
    ----------
    model
        The model.
    t
        Continuation tokens simulated, at least 0.
    carries
        What is known of all positions before the chunk that holds t+1.  For layers of one head with recency 0, shape
        (L, 2): each one's sum as an unevaluated pair high + low; for others what `HeadRecursion` carries, shape (K,).
    layout
        Shape of the chunks.
    biased, reminded
        Whether there is a prompt-key bias, and whether there are reminders.  The functions themselves are
        not part of the state: give the same ones again.

    Raises
    ------
    ValueError
        For carries of the wrong shape or not finite, and for t below 0.

    Examples
    --------
    >>> from relaymodel.simulation import Simulation
    >>> simulation = Simulation(RelayModel.uniform(prompt=64, depth=2, relay=1))
    >>> _ = simulation.advance(1000)
    >>> simulation.state.t, simulation.state.carries.shape
    (1000, (2, 2))
    """

    model: RelayModel
    t: int
    carries: Floats
    layout: Layout
    biased: bool = False
    reminded: bool = False

    def __post_init__(self) -> None:
        positive_integer("t", self.t, least=0)
        shape = (np.size(self.carries),) if convolves(self.model, self.biased) else (self.model.depth, 2)
        carries = series("carries", np.ravel(self.carries))
        if np.shape(self.carries) != shape:
            raise ValueError(f"carries must have shape {shape}, got {np.shape(self.carries)}")
        carries = carries.reshape(shape)
        carries.flags.writeable = False
        object.__setattr__(self, "carries", carries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimulationState):
            return NotImplemented
        return self._facts() == other._facts() and np.array_equal(self.carries, other.carries)

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def _facts(self) -> tuple[object, ...]:
        return self.model, self.t, self.layout, self.biased, self.reminded

    def to_npz(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write the state to an NPZ file without pickled objects; nothing is rounded."""
        header = {
            "model": self.model.as_dict(),
            "t": self.t,
            "layout": [self.layout.rows, self.layout.columns],
            "biased": self.biased,
            "reminded": self.reminded,
        }
        return files.write_npz(path, {"carries": self.carries}, header, overwrite=overwrite)

    @classmethod
    def from_npz(cls, path: files.PathLike) -> "SimulationState":
        """Read what `to_npz` wrote; pickled objects are refused.

        Raises `ValueError` naming the file if it holds something else.
        """
        arrays, header = files.read_npz(path, "SimulationState.to_npz", ("carries",))
        try:
            return cls(
                RelayModel.from_dict(header["model"]),
                header["t"],
                arrays["carries"],
                Layout(*header["layout"]),
                header["biased"],
                header["reminded"],
            )
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must hold a state that SimulationState.to_npz wrote: {show(error)}") from None
