"""What two prompts make of the next token: distances of the two runs' predictions, token by token."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from relaymodel import files
from relaymodel.checks import choice
from relaymodel.display import brief
from relaymodel.networks.protocol.curves import over_pairs
from relaymodel.networks.protocol.rounding import CLEARANCE, rounding

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from relaymodel.curve import Curve
    from relaymodel.inference import PowerLaw
    from relaymodel.networks.protocol.measurement import Measurement

Array = NDArray[np.float64]

DIVERGENCES = ("total_variation", "jensen_shannon", "kl", "log_probability")
POSITIONS_AT_ONCE = 8  # whose distributions are compared at once, in float64
LEAST_TOKENS = 2  # tokens of a curve


@dataclass(frozen=True, eq=False)
class NextToken:
    r"""How the predictions of two runs differ, p after prompt A and q after prompt B (THEORY sections 1 and 9).

    With the continuation held fixed the theorem has the prompt's influence on the next token tend to zero; what remains
    must be in the text.

    Attributes
    ----------
    t
        Shape (T,): 1..T.
    total_variation, jensen_shannon, kl
        Shape (K, T): $\frac12\sum|p-q|$, $\frac12\sum p\log\frac{2p}{p+q}+\frac12\sum q\log\frac{2q}{p+q}$ and
        $\sum p\log\frac pq$, in nats, of the predictions made at continuation token t.  The first is linear in small
        differences, the others are quadratic.
    log_probability
        Shape (2, K, T): of the continuation's own token t, in nats, given all before it, in both runs.
    spread
        Shape (K, T): root mean square of the logits about their mean; what rounding is compared with.
    """

    t: NDArray[np.int64]
    total_variation: Array
    jensen_shannon: Array
    kl: Array
    log_probability: Array
    spread: Array
    depth: int
    precision: float
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def of(cls, values: Array, measured: Measurement) -> NextToken:
        """Return what recorders of K pairs noted, (K, 6, T)."""
        total_variation, jensen_shannon, kl, *both, spread = np.moveaxis(values, 1, 0)
        divergences = total_variation, jensen_shannon, kl
        about = measured.depth, measured.precision, measured.provenance
        return cls(measured.t, *divergences, np.stack(both), spread, *about)

    @property
    def loss(self) -> Array:
        """Shape (2, K): the mean negative log-probability of the continuation's tokens, in nats a token."""
        return np.asarray(-self.log_probability.mean(axis=-1))

    def each(self, kind: str = "total_variation") -> Array:
        r"""Return one of the distances of every pair, shape (K, T).

        "log_probability" is $|\log p - \log q|$ of the token that the continuation has at t.
        """
        choice("kind", kind, DIVERGENCES)
        if kind == "log_probability":
            return np.asarray(np.abs(self.log_probability[0] - self.log_probability[1]))
        return np.asarray(getattr(self, kind))

    def reliable(self, kind: str = "total_variation") -> NDArray[np.bool_]:
        """Return at which t, shape (T,), every pair is clear of rounding, 3 times what it makes of equal predictions.

        Rounding moves logits by `spread` times that of the last states (see `Measurement`), and so the total variation
        by .4 times as much.
        """
        noise = self.spread * float(rounding(self.precision, self.depth))
        if kind == "log_probability":
            clear = self.each(kind) > CLEARANCE * noise
        else:
            clear = (self.total_variation > CLEARANCE * 0.4 * noise) & (self.each(kind) > 0)
        return np.asarray(clear.all(axis=0))

    def curve(self, kind: str = "total_variation") -> Curve:
        """Return a distance against t, the geometric mean over pairs; tokens not clear of rounding are left out.

        Raises `ValueError` if fewer than two tokens remain.
        """
        each, keep = self.each(kind), self.reliable(kind)
        if keep.sum() < LEAST_TOKENS:
            raise ValueError(
                f"the predictions must differ at {LEAST_TOKENS} tokens or more, got {keep.sum()} clear of rounding; "
                "measure in a wider number format or with fewer tokens"
            )
        known = dict(self.provenance) | {"instrument": "next token", "kind": kind, "pairs": str(len(each))}
        if not keep.all():
            known["left out"] = f"{np.sum(~keep)} tokens within {CLEARANCE:g} times the rounding of the predictions"
        return over_pairs(self.t[keep], each[:, keep], known)

    def alpha(
        self, kind: str = "total_variation", *, t_min: float | None = None, t_max: float | None = None
    ) -> PowerLaw:
        """Return the exponent of a distance, as `Measurement.alpha` does; of quadratic ones it is about twice."""
        from relaymodel.inference import fit_power_law

        return fit_power_law(self.curve(kind), t_min=t_min, t_max=t_max)

    def to_csv(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write geometric means over pairs, and the mean log-probabilities of both runs, one row a token."""
        columns: dict[str, Any] = {"t": self.t.tolist()}
        for kind in DIVERGENCES[:3]:
            with np.errstate(divide="ignore"):  # equal predictions: the mean is 0
                columns[kind] = np.exp(np.log(self.each(kind)).mean(axis=0)).tolist()
        for name, values in zip(("log_p_a", "log_p_b"), self.log_probability.mean(axis=1), strict=True):
            columns[name] = values.tolist()
        return files.write_table(path, columns, dict(self.provenance), overwrite=overwrite)


class NextTokenRecorder:
    """Takes the logits of both runs, a few positions at a time, and keeps what `NextToken` holds of one pair."""

    SOURCE: ClassVar[str] = "logits"

    def __init__(self, tokens: NDArray[np.int64], prompt: int, depth: int) -> None:
        self.prompt, self.following = prompt, tokens[0, prompt:]
        self.values = np.full(self.shape(depth, self.following.size), np.nan)

    @staticmethod
    def shape(_: int, steps: int) -> tuple[int, ...]:
        """Return the shape of `result`."""
        return (6, steps)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Where logits are wanted: from the prompt's last token on."""
        return np.arange(self.prompt - 1, self.prompt + self.following.size)

    def take(self, positions: NDArray[np.int64], logits: Any) -> None:
        """Note the logits, (2, r, vocabulary), at r positions; arrays of NumPy or torch."""
        for start in range(0, positions.size, POSITIONS_AT_ONCE):
            some = slice(start, start + POSITIONS_AT_ONCE)
            self._compare(positions[some] + 1 - self.prompt, logits[:, some])

    def _compare(self, t: NDArray[np.int64], logits: Any) -> None:
        xp = sys.modules[type(logits).__module__.partition(".")[0]]  # the states may be on another device
        x = xp.asarray(logits, dtype=xp.float64)
        spread = xp.sqrt(xp.abs((x * x).mean(-1) - x.mean(-1) ** 2).mean(0))
        x = x - xp.amax(x, -1)[..., None]
        chances = xp.exp(x)
        total = chances.sum(-1)
        p, q = chances / total[..., None]
        d = x[1] - x[0] - xp.log(total[1] / total[0])[..., None]
        total_variation, kl = xp.abs(p - q).sum(-1) / 2, -(p * d).sum(-1)
        # p log 2p/(p+q) + q log 2q/(p+q), with log 2p/(p+q) = log 2 - log(1 + e^d), whose e^d is q/p
        less, more = xp.minimum(p, q), xp.maximum(p, q) + 1e-300  # where neither run gives a token a chance
        gap = np.log(2) - xp.log1p(less / more) - (d + xp.abs(d)) / 2
        jensen_shannon = ((p + q) * gap + q * d).sum(-1) / 2
        inside, ahead = t >= 1, t < self.following.size
        for row, value in ((0, total_variation), (1, jensen_shannon), (2, kl), (5, spread)):
            least = 0.0 if row < 3 else -np.inf  # rounding puts quadratic distances of equal runs on either side of 0
            self.values[row, t[inside] - 1] = np.maximum(_host(value)[inside], least)
        some = np.flatnonzero(ahead)
        actual = x[:, some, self.following[t[ahead]]] - xp.log(total[:, some])
        self.values[3:5, t[ahead]] = _host(actual)

    def result(self) -> Array:
        """Return the noted values, (6, T)."""
        if not np.all(np.isfinite(self.values)):
            t = int(np.argmin(np.isfinite(self.values).all(axis=0))) + 1
            raise ValueError(f"network must give finite logits at every token, got none or NaN or inf at t = {t}")
        return self.values


def _host(array: Any) -> Array:
    """Return an array of NumPy or torch as one of NumPy."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)
