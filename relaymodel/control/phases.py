"""The phase diagram of the prompt bias: strength against depth, or recency (THEORY sections 7 and 10)."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relaymodel.checks import Number, demand, positive, real, series, show
from relaymodel.control.limits import DECAY, PLATEAU, REVERSAL, bias_limit
from relaymodel.control.response import LATEST, check_positive, respond, uniform
from relaymodel.display import table
from relaymodel.model import Layer, RelayModel
from relaymodel.simulation.bias import LARGEST_STRENGTH, PromptBias
from relaymodel.simulation.run import Simulation

Array = NDArray[np.float64]

TOLERANCE = 0.01  # local exponents below it count as flat, unless the caller asks otherwise
MOST_BY_TOKENS = 2**20
"""Tokens to the horizon where every cell is run token by token."""


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """What is seen at token `horizon`, for each strength, and each depth or recency; see `phase_diagram`.

    Attributes
    ----------
    strengths
        Shape (S,).
    recencies
        Recency exponent of each row, shape (R,); None where row l-1 is for the first l layers.
    exponents
        Local exponents at the horizon, shape (L, S) or (R, S).
    phases
        'decay', 'plateau' or 'reversal' at the horizon, of the same shape.
    limits
        The same for t to infinity, shape (S,): neither depth nor recency plays a role.
    tolerance
        The size of a local exponent below which D counts as a plateau.
    """

    model: RelayModel
    strengths: Array
    recencies: Array | None
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
                ("depths", f"1 to {self.model.depth}" if self.recencies is None else f"{self.model.depth}"),
                *([] if self.recencies is None else [("recencies", ", ".join(f"{g:.4g}" for g in self.recencies))]),
                ("prompt", self.model.prompt),
                ("horizon", f"t = {self.horizon:.6g}"),
                *((f"cells in {phase}", counts[phase]) for phase in (DECAY, PLATEAU, REVERSAL)),
                ("for t to infinity", ", ".join(f"{b:g}: {p}" for b, p in _changes(self.strengths, self.limits))),
                ("method", self.method),
            ],
        )


def _changes(strengths: Array, limits: NDArray[np.str_]) -> list[tuple[float, str]]:
    """Return the first strength of each limit."""
    return [(strengths[i], limits[i]) for i in range(strengths.size) if i == 0 or limits[i] != limits[i - 1]]


def phase_diagram(
    model: RelayModel,
    strengths: ArrayLike,
    *,
    recencies: ArrayLike | None = None,
    horizon: Number = 10**6,
    tolerance: float = TOLERANCE,
) -> PhaseDiagram:
    r"""Return the phases of D over the bias's strength and depth, or recency, at a horizon and in the limit.

    In the limit the strength alone decides, because the prompt's share does (THEORY section 7): it falls as
    $t^{\beta-1}$ for $\beta < 1$ (decay), tends to a constant for $\beta = 1$ (plateau), to 1 for $\beta > 1$
    (reversal), and each layer inherits that from the one below.  Depth only moves the time, and so does a recency
    (section 10), which makes the first share smaller, so that the same bias has more to raise.  At a finite horizon
    both count: D of a deep stack still falls where that of a shallow one has turned, and near strength 1 both look
    flat.  Here a cell is in

    - reversal, if D rises at the horizon; with uniform heads this needs $\beta > 1$ and a horizon beyond the turn,
      $P/(\beta-1)$ for one layer and later for more;
    - plateau, if it does not and the local exponent is below `tolerance`;
    - decay otherwise.

    Parameters
    ----------
    model
        Strengths not negative, any heads and sinks; depth l is its first l layers, each of which must have an
        influence.
    strengths
        Bias strengths, shape (S,), increasing.
    recencies
        None: a row for each depth.  Else a row for each of these exponents (R,), below 1 and increasing, which all
        heads get in place of their own.
    horizon
        Whole number of tokens, from 2 to 1e300; to 2^20 where heads are not uniform, for which every cell is a
        recursion token by token.
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
    >>> model = RelayModel.uniform(prompt=64, depth=2, relay=1)
    >>> phase_diagram(model, [0, 1, 1.2], recencies=[0, 0.9], horizon=300).phases.tolist()
    [['decay', 'decay', 'decay'], ['decay', 'decay', 'reversal']]
    """
    check_positive(model, "for a phase diagram")
    if not model.layers[0].relays:
        raise ValueError(f"model must relay in its first layer for a phase diagram, got {show(model.layers[0])}")
    betas = series("strengths", strengths)
    demand("strengths", betas, (betas >= 0) & (betas <= LARGEST_STRENGTH), f"from 0 to {LARGEST_STRENGTH}")
    demand("strengths", betas, np.diff(betas, prepend=-1.0) > 0, "increasing")
    gammas = None if recencies is None else series("recencies", recencies)
    if gammas is not None:
        demand("recencies", gammas, gammas < 1, "less than 1")
        demand("recencies", gammas, np.diff(gammas, prepend=-np.inf) > 0, "increasing")
    last = real("horizon", horizon)
    flat = positive("tolerance", tolerance)
    by_tokens = gammas is not None or not uniform(model)
    if not 2 <= last <= (MOST_BY_TOKENS if by_tokens else LATEST) or last != int(last):
        raise ValueError(
            f"horizon must be a whole number of tokens from 2 to {'2^20' if by_tokens else '1e300'}, got "
            f"{show(horizon)}"
        )
    if by_tokens:
        rows = _depths(model) if gammas is None else [_with_recency(model, gamma) for gamma in gammas.tolist()]
        cells = [[_cell(row, beta, int(last)) for row in rows] for beta in betas.tolist()]
    else:
        cells = [_uniform_cells(model, beta, float(last)) for beta in betas.tolist()]
    alpha, rising = np.array(cells).transpose(2, 1, 0)
    seen = np.where(rising > 0, REVERSAL, np.where(np.abs(alpha) < flat, PLATEAU, DECAY))
    limits = np.array([bias_limit(model, PromptBias(beta)).phase for beta in betas.tolist()])
    method = "recursion, token by token" if by_tokens else "recursion on a grid in log t"
    return PhaseDiagram(model, betas, gammas, float(last), alpha, seen, limits, flat, method)


def _uniform_cells(model: RelayModel, beta: float, horizon: float) -> list[tuple[float, float]]:
    """Return the local exponent at the horizon, and whether D rises there, of every depth."""
    end = np.array([horizon])
    response = respond(model, PromptBias(beta), horizon)
    rises = (response.grid.read(response.steps, end)[:, 0] > 0) & (beta > 1)
    return list(zip(response.exponents(end)[:, 0].tolist(), rises.astype(float).tolist(), strict=True))


def _cell(model: RelayModel, beta: float, horizon: int) -> tuple[float, float]:
    """Return the same of one model, from central differences of a simulation."""
    samples = [horizon - 1, horizon, horizon + 1]
    _, (before, D, after) = Simulation(model, bias=PromptBias(beta)).advance(horizon + 1, samples=samples)
    return -horizon * float((after - before) / (2 * D)), float(after > before)


def _depths(model: RelayModel) -> list[RelayModel]:
    return [RelayModel(model.prompt, model.layers[:depth]) for depth in range(1, model.depth + 1)]


def _with_recency(model: RelayModel, recency: float) -> RelayModel:
    layers = [
        Layer(heads=[replace(head, recency=recency) for head in l.heads], residual=l.residual, sink=l.sink)
        for l in model.layers
    ]
    return RelayModel(model.prompt, layers)
