"""What one layer does: a residual, heads that average over the keys seen so far, and a sink."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import tee

from relaymodel.checks import Number, real, show

OUTSIDE = (
    "decay must be 1 for exact values, got {}: a head that decays with distance shares no eigenvectors with others; "
    "simulate and token_weights take it"
)
MOST_FACTORS = 100_000  # factors of an eigenvalue: beyond, the exact fraction helps nobody


@dataclass(frozen=True, repr=False)
class Head:
    r"""One attention head: keys weighed by their position and by their distance (THEORY sections 1 and 10).

    $$ w_{ns} = \frac{\Gamma(s+g)}{\Gamma(s)} \frac{\Gamma(n-s+1-\gamma)}{\Gamma(n-s+1)}
       \sim s^g\, (n-s)^{-\gamma}, $$

    normalised over $s \le n$.  The relative position u = s/n of the key is then distributed as Beta$(1+g, 1-\gamma)$.

    Parameters
    ----------
    relay
        Relay strength $\lambda$, any finite real.
    position
        Position exponent $g > -1$: $g < 0$ favours early keys, $g > 0$ late ones.
    recency
        Recency exponent $\gamma < 1$: $\gamma > 0$ favours near keys, $\gamma < 0$ far ones; 0 is attention by
        position alone.  $\gamma \to 1$ leaves the token itself, which is the layer's residual.
    decay
        Factor r in (0, 1] for each token between key and query, weights $r^{n-s}$, instead of position and recency: the
        linear bias of ALiBi with slope $-\log r$.  Below 1 a head has a scale of its own and is outside the exactly
        solvable class: `simulate`, `token_weights` and `RelayModel.differences` take it, exact values refuse it.

    Each may be int, float, `fractions.Fraction` or a NumPy scalar and keeps its exact value.

    Raises
    ------
    TypeError
        For strings, booleans and whatever else is not a real number.
    ValueError
        For NaN, infinities, `position <= -1`, `recency >= 1`, and a decay outside (0, 1] or beside the others.

    Examples
    --------
    >>> [str(x) for x in Head(1, recency=0.5).means([1, 0, 0])]  # less than uniform attention's 1, 1/2, 1/3
    ['1', '1/3', '1/5']
    """

    relay: Number
    position: Number = 0
    recency: Number = 0
    decay: Number = 1

    def __post_init__(self) -> None:
        for name in ("relay", "position", "recency", "decay"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
        if not self.position > -1:
            raise ValueError(
                f"position must be greater than -1, got {show(self.position)}; "
                "the attention weights Gamma(s+g)/Gamma(s) are positive only there"
            )
        if not self.recency < 1:
            raise ValueError(
                f"recency must be less than 1, got {show(self.recency)}; "
                "as it tends to 1 a head attends to the token itself alone, which belongs to residual"
            )
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {show(self.decay)}")
        if self.decay < 1 and (self.position != 0 or self.recency != 0):
            raise ValueError(
                f"decay must be 1 with a position or recency, got {show(self.decay)} beside position="
                f"{show(self.position)}, recency={show(self.recency)}; make it another Head"
            )

    def means(self, values: Iterable[Number]) -> Iterator[Fraction]:
        r"""Yield the weighted mean of $x_1, \dots, x_n$ for n = 1, 2, ..., exactly.

        For $\gamma = 0$ it obeys $m_n = m_{n-1} + \frac{1+g}{n+g}(x_n - m_{n-1})$, because
        $\sum_{s\le n} w_s = \Gamma(n+1+g)/((1+g)\Gamma(n))$.  Otherwise the sum is taken by its definition, with
        weights relative to the first, whose row sum is $(2+g-\gamma)_{n-1}/(n-1)!$: O(n) operations a value.
        """
        g, delta = Fraction(self.position), 1 - Fraction(self.recency)
        if self.decay < 1:
            r, weighted, weight = Fraction(self.decay), Fraction(0), Fraction(0)
            for value in values:
                weighted, weight = r * weighted + Fraction(value), r * weight + 1
                yield weighted / weight
            return
        if delta == 1:
            mean = Fraction(0)
            for n, value in enumerate(values, start=1):
                mean += (1 + g) / (n + g) * (Fraction(value) - mean)
                yield mean
            return
        seen: list[Fraction] = []
        near: list[Fraction] = []
        position, distance, total = Fraction(1), Fraction(1), Fraction(1)
        for n, value in enumerate(values, start=1):
            seen.append(position * Fraction(value))
            near.append(distance)
            yield sum((x * w for x, w in zip(seen, reversed(near), strict=True)), Fraction(0)) / total
            position *= (n + g) / n
            distance *= (n - 1 + delta) / n
            total *= (n + g + delta) / n

    def eigenvalue(self, n: Number) -> Fraction:
        r"""Return $E[u^{n-1}] = \frac{\Gamma(2+g-\gamma)\,\Gamma(n+g)}{\Gamma(1+g)\,\Gamma(n+1+g-\gamma)}$, exactly.

        For a whole $\gamma$ it is a rational function, and n any real number other than a pole; otherwise it is
        rational at integers n, up to 100 000.  A head with a decay has it at n = 1 only.

        >>> Head(1, recency=Fraction(1, 2)).eigenvalue(3)
        Fraction(8, 15)
        """
        if self.decay < 1:
            if n == 1:
                return Fraction(1)
            raise ValueError(OUTSIDE.format(show(self.decay)))
        z, g, delta = Fraction(real("n", n)), Fraction(self.position), 1 - Fraction(self.recency)
        product = Fraction(1)
        if delta.denominator == 1:
            for i in range(int(delta)):
                if z + g + i == 0:
                    raise ValueError(f"n must not be a pole -position of a layer, got {show(n)}")
                product *= (1 + g + i) / (z + g + i)
            return product
        if z.denominator != 1 or not 1 <= z <= MOST_FACTORS:
            raise ValueError(
                f"n must be an integer from 1 to {MOST_FACTORS} with a recency that is not whole, got {show(n)}; "
                "the eigenvalue is a rational number only there"
            )
        for j in range(1, int(z)):
            product *= (j + g) / (j + g + delta)
        return product

    def __repr__(self) -> str:
        shown = f"relay={self.relay!r}, position={self.position!r}, recency={self.recency!r}"
        return f"Head({shown})" if self.decay == 1 else f"Head(relay={self.relay!r}, decay={self.decay!r})"

    def __str__(self) -> str:
        """Return the head as `parse_heads` reads it.

        >>> str(Head(0.3, recency=0.7))
        '0.3:recency=0.7'
        """
        return ":".join([str(self.relay), *(f"{name}={value}" for name, value in self.options.items())])

    @property
    def options(self) -> dict[str, Number]:
        """What is not as in uniform attention, by name."""
        usual = {"position": 0, "recency": 0, "decay": 1}
        return {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}


@dataclass(frozen=True, init=False, repr=False)
class Layer:
    r"""One relay layer: a residual, causal averages, and a sink (THEORY sections 1 and 10).

    A sequence of differences $x_1, x_2, \dots$ becomes

    $$ x'_n = \rho\, x_n + \sum_h \lambda_h \frac{\sum_{s\le n} w^h_{ns} x_s}{\sum_{s\le n} w^h_{ns}} + \sigma\, x_1, $$

    the weights $w^h$ as in `Head`.  With one head it is written `Layer(relay, residual, position, recency, sink)`.

    Parameters
    ----------
    relay
        Relay strength $\lambda$ of the only head, any finite real.
    residual
        Residual strength $\rho$, any finite real; 1 in a transformer.
    position
        Position exponent $g > -1$ of the only head: a key at position s has logit bias about $g \log s$.
        0 is uniform causal attention, $g < 0$ favours early keys, $g > 0$ late ones.
    recency
        Recency exponent $\gamma < 1$ of the only head: a key at distance d has logit bias about $-\gamma \log d$.
    sink
        Weight $\sigma$ of the first token, any finite real, on top of what the heads give it.
    heads
        Several `Head` objects instead of relay, position and recency; any iterable, kept as a tuple.

    Each number may be int, float, `fractions.Fraction` or a NumPy scalar and keeps its exact value.

    Raises
    ------
    TypeError
        For strings, booleans and whatever else is not a real number; for heads that are not `Head` objects.
    ValueError
        For NaN, infinities, `position <= -1`, `recency >= 1`; for heads beside relay, position or recency.

    Examples
    --------
    >>> list(Layer(relay=1).apply([1, 0, 0]))  # uniform attention: a third of the sum at the third position
    [Fraction(2, 1), Fraction(1, 2), Fraction(1, 3)]
    >>> Layer(heads=[Head(0.5), Head(0.25, recency=0.5)], sink=0.125)
    Layer(heads=(Head(relay=0.5, position=0, recency=0), Head(relay=0.25, position=0, recency=0.5)), residual=1,
          sink=0.125)
    """

    heads: tuple[Head, ...]
    residual: Number
    sink: Number

    def __init__(
        self,
        relay: Number | None = None,
        residual: Number = 1,
        position: Number = 0,
        recency: Number = 0,
        sink: Number = 0,
        *,
        heads: Iterable[Head] | None = None,
    ) -> None:
        if heads is None:
            if relay is None:
                raise TypeError("relay must be an int, float, Fraction or NumPy scalar, or heads be given, got neither")
            found: tuple[Head, ...] = (Head(relay, position, recency),)
        elif relay is not None or position != 0 or recency != 0:
            raise ValueError(
                f"heads must not be given together with relay, position or recency, got relay={show(relay)}, "
                f"position={show(position)}, recency={show(recency)}; make it another Head"
            )
        else:
            found = _heads(heads)
        object.__setattr__(self, "heads", found)
        object.__setattr__(self, "residual", real("residual", residual))
        object.__setattr__(self, "sink", real("sink", sink))

    @property
    def relay(self) -> Number:
        r"""Relay strength $\lambda$ of the only head; a layer of several has none: `ValueError`."""
        return self._only("relay").relay

    @property
    def position(self) -> Number:
        """Position exponent g of the only head; a layer of several has none: `ValueError`."""
        return self._only("position").position

    @property
    def recency(self) -> Number:
        r"""Recency exponent $\gamma$ of the only head; a layer of several has none: `ValueError`."""
        return self._only("recency").recency

    def _only(self, name: str) -> Head:
        if len(self.heads) > 1:
            raise ValueError(f"{name} must be read off each of heads: the layer has {len(self.heads)}")
        return self.heads[0]

    @property
    def plain(self) -> bool:
        """Whether this is the layer of THEORY section 1: one head, recency 0, decay 1, no sink."""
        return len(self.heads) == 1 and not self.heads[0].options.keys() & {"recency", "decay"} and self.sink == 0

    @property
    def relays(self) -> bool:
        """Whether any head has a relay other than 0."""
        return any(head.relay != 0 for head in self.heads)

    def apply(self, values: Iterable[Number]) -> Iterator[Fraction]:
        r"""Yield $x'_n$ for n = 1, 2, ..., exactly, from rational $x_n$ (THEORY sections 1 and 10).

        With `Head.means` this is the only statement of what a layer does; everything else in the package is
        derived from it or tested against it.  A head of recency 0 takes O(1) operations a value, others O(n).
        """
        residual, sink = Fraction(self.residual), Fraction(self.sink)
        own, *streams = tee((Fraction(value) for value in values), 1 + len(self.heads))
        relayed = [(Fraction(head.relay), head.means(x)) for head, x in zip(self.heads, streams, strict=True)]
        first: Fraction | None = None
        for x in own:
            first = x if first is None else first
            yield residual * x + sum((relay * next(means) for relay, means in relayed), sink * first)

    def eigenvalue(self, n: Number) -> Fraction:
        r"""Return $\rho + \sum_h \lambda_h E_h[u^{n-1}]$, a factor of f(n), which knows nothing of sinks."""
        return sum(
            (Fraction(head.relay) * head.eigenvalue(n) for head in self.heads if head.relay), Fraction(self.residual)
        )

    def __repr__(self) -> str:
        if len(self.heads) > 1 or self.heads[0].decay != 1:
            parts = [("heads", self.heads), ("residual", self.residual), ("sink", self.sink)]
        else:
            parts = [("relay", self.relay), ("residual", self.residual), ("position", self.position)]
            parts += [("recency", self.recency), ("sink", self.sink)]
        shown = (f"{name}={value!r}" for name, value in parts if name not in ("recency", "sink") or value != 0)
        return f"Layer({', '.join(shown)})"


def _heads(heads: object) -> tuple[Head, ...]:
    """Return at least one `Head` as a tuple."""
    if isinstance(heads, Head):
        raise TypeError("heads must be a sequence of Head objects, got a single Head; pass [head]")
    if not isinstance(heads, Iterable):
        raise TypeError(f"heads must be a sequence of Head objects, got {show(heads)}")
    found: Sequence[object] = tuple(heads)
    if not found:
        raise ValueError("heads must hold at least one Head, got none; Layer(0, residual) does not relay")
    for i, head in enumerate(found):
        if not isinstance(head, Head):
            raise TypeError(f"heads must be Head objects, got {show(head)} at index {i}")
    return tuple(head for head in found if isinstance(head, Head))
