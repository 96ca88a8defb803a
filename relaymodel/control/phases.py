"""The phase diagram of the prompt bias: strength against depth (THEORY section 7)."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relaymodel.checks import Number, demand, real, series, show
from relaymodel.control.limits import DECAY, PLATEAU, REVERSAL
from relaymodel.control.response import LATEST, check_positive, respond
from relaymodel.display import table
from relaymodel.model import RelayModel
from relaymodel.simulation.bias import LARGEST_STRENGTH, PromptBias

Array = NDArray[np.float64]

TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """What is seen at token `horizon`, for each depth and strength; see `phase_diagram`.

    Attributes
    ----------
    strengths
        Shape (S,).
    exponents
        Local exponents at the horizon, shape (L, S); row l-1 is for the first l layers.
    phases
        'decay', 'plateau' or 'reversal' at the horizon, shape (L, S).
    limits
        The same for t to infinity, shape (S,): the depth plays no role.
    tolerance
        The size of a local exponent below which D counts as a plateau.
    """

    model: RelayModel
    strengths: Array
    horizon: float
    exponents: Array
    phases: NDArray[np.str_]
    limits: NDArray[np.str_]
    tolerance: float
    method: str

    def _repr_html_(self) -> str:
        counts = Counter(self.phases.ravel().tolist())
        return table(
            "Phase diagram of the prompt bias",
            [
                ("strengths", f"{self.strengths[0]:.6g} to {self.strengths[-1]:.6g}, {self.strengths.size} of them"),
                ("depths", f"1 to {self.model.depth}"),
                ("prompt", self.model.prompt),
                ("horizon", f"t = {self.horizon:.6g}"),
                *((f"cells in {phase}", counts[phase]) for phase in (DECAY, PLATEAU, REVERSAL)),
                ("for t to infinity", "decay below strength 1, plateau at 1, reversal above, at any depth"),
                ("method", self.method),
            ],
        )


def phase_diagram(
    model: RelayModel, strengths: ArrayLike, *, horizon: Number = 10**6, tolerance: float = TOLERANCE
) -> PhaseDiagram:
    r"""Return the phases of D over the bias's strength and the depth, at a horizon and in the limit (THEORY section 7).

    In the limit the strength alone decides, because the prompt's share does: it falls as $t^{\beta-1}$ for
    $\beta < 1$ (decay), tends to a constant for $\beta = 1$ (plateau), to 1 for $\beta > 1$ (reversal), and each layer
    inherits that from the one below.  Depth only moves the time.  At a finite horizon it counts: D of a deep stack
    still falls where that of a shallow one has turned, and near strength 1 both look flat.  Here a cell is in

    - reversal, if D rises at the horizon; this needs $\beta > 1$ and a horizon beyond the turn, $P/(\beta-1)$ for one
      layer and later for more;
    - plateau, if it does not and the local exponent is below `tolerance`;
    - decay otherwise.

    Parameters
    ----------
    model
        Position 0, strengths not negative; depth l is its first l layers, each of which must have an influence.
    strengths
        Bias strengths, shape (S,), increasing.
    horizon
        Whole number of tokens, from 2 to 1e300.
    tolerance
        Positive.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments.

    Examples
    --------
    >>> diagram = phase_diagram(RelayModel.uniform(prompt=64, depth=2, relay=1), [0, 1, 2], horizon=1000)
    >>> diagram.phases.tolist()
    [['decay', 'decay', 'reversal'], ['decay', 'decay', 'reversal']]
    >>> diagram.limits.tolist()
    ['decay', 'plateau', 'reversal']
    """
    check_positive(model, "for a phase diagram")
    if not model.layers[0].relay:
        raise ValueError(f"model must relay in its first layer for a phase diagram, got {show(model.layers[0])}")
    betas = series("strengths", strengths)
    demand("strengths", betas, (betas >= 0) & (betas <= LARGEST_STRENGTH), f"from 0 to {LARGEST_STRENGTH}")
    demand("strengths", betas, np.diff(betas, prepend=-1.0) > 0, "increasing")
    last = real("horizon", horizon)
    if not 2 <= last <= LATEST or last != int(last):
        raise ValueError(f"horizon must be a whole number of tokens from 2 to 1e300, got {show(horizon)}")
    flat = float(real("tolerance", tolerance))
    if flat <= 0:
        raise ValueError(f"tolerance must be positive, got {show(tolerance)}")
    end = np.array([float(last)])
    exponents, rising = [], []
    for beta in betas.tolist():
        response = respond(model, PromptBias(beta), float(last))
        exponents.append(response.exponents(end)[:, 0])
        rising.append((response.grid.read(response.steps, end)[:, 0] > 0) & (beta > 1))
    alpha = np.array(exponents).T
    seen = np.where(np.array(rising).T, REVERSAL, np.where(np.abs(alpha) < flat, PLATEAU, DECAY))
    limits = np.where(betas < 1, DECAY, np.where(betas == 1, PLATEAU, REVERSAL))
    method = "recursion on a grid in log t"
    return PhaseDiagram(model, betas, float(last), alpha, seen, limits, flat, method)
