"""Where a simulation stands, and the file it waits in."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from relaymodel import files
from relaymodel.checks import positive_integer, series, show
from relaymodel.model import Layer, RelayModel
from relaymodel.simulation.inputs import Floats
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
        Shape (L, 2): for each layer the sum over all positions before the chunk that holds t+1, as an
        unevaluated pair high + low.
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
        carries = series("carries", np.ravel(self.carries))
        if np.shape(self.carries) != (self.model.depth, 2):
            raise ValueError(f"carries must have shape {(self.model.depth, 2)}, got {np.shape(self.carries)}")
        carries = carries.reshape(self.model.depth, 2)
        carries.flags.writeable = False
        object.__setattr__(self, "carries", carries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimulationState):
            return NotImplemented
        return self._header() == other._header() and np.array_equal(self.carries, other.carries)

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def _header(self) -> dict[str, Any]:
        return {
            "prompt": self.model.prompt,
            "layers": [[str(value) for value in layer] for layer in self.model.rational],
            "t": self.t,
            "layout": [self.layout.rows, self.layout.columns],
            "biased": self.biased,
            "reminded": self.reminded,
        }

    def to_npz(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write the state to an NPZ file without pickled objects; nothing is rounded."""
        return files.write_npz(path, {"carries": self.carries}, self._header(), overwrite=overwrite)

    @classmethod
    def from_npz(cls, path: files.PathLike) -> "SimulationState":
        """Read what `to_npz` wrote; pickled objects are refused.

        Raises `ValueError` naming the file if it holds something else.
        """
        arrays, header = files.read_npz(path, "SimulationState.to_npz", ("carries",))
        try:
            layers = tuple(Layer(*map(Fraction, layer)) for layer in header["layers"])
            return cls(
                RelayModel(header["prompt"], layers),
                header["t"],
                arrays["carries"],
                Layout(*header["layout"]),
                header["biased"],
                header["reminded"],
            )
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must hold a state that SimulationState.to_npz wrote: {show(error)}") from None
