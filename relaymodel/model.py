"""The specification of the linear relay model: what a layer does, and how layers are stacked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from relaymodel.checks import Number, positive_integer, real, show


@dataclass(frozen=True)
class Layer:
    r"""One relay layer: causal averaging with a residual connection (THEORY section 1).

    A sequence of differences $x_1, x_2, \dots$ becomes

    $$ x'_n = \rho\, x_n + \lambda\, \frac{\sum_{s\le n} w_s x_s}{\sum_{s\le n} w_s}, \qquad
       w_s = \frac{\Gamma(s+g)}{\Gamma(s)}. $$

    Parameters
    ----------
    relay
        Relay strength $\lambda$, any finite real.
    residual
        Residual strength $\rho$, any finite real; 1 in a transformer.
    position
        Position exponent $g > -1$: a key at position s has logit bias $\log w_s \approx g \log s$.
        0 is uniform causal attention, $g < 0$ favours early keys, $g > 0$ late ones.

    Each may be int, float, `fractions.Fraction` or a NumPy scalar and keeps its exact value.

    Raises
    ------
    TypeError
        For strings, booleans and whatever else is not a real number.
    ValueError
        For NaN, infinities, and `position <= -1`.

    Examples
    --------
    >>> list(Layer(relay=1).apply([1, 0, 0]))  # uniform attention: a third of the sum at the third position
    [Fraction(2, 1), Fraction(1, 2), Fraction(1, 3)]
    """

    relay: Number
    residual: Number = 1
    position: Number = 0

    def __post_init__(self) -> None:
        for name in ("relay", "residual", "position"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
        if not self.position > -1:
            raise ValueError(
                f"position must be greater than -1, got {show(self.position)}; "
                "the attention weights Gamma(s+g)/Gamma(s) are positive only there"
            )

    def apply(self, values: Iterable[Number]) -> Iterator[Fraction]:
        r"""Yield $x'_n$ for n = 1, 2, ..., exactly, from rational $x_n$ (THEORY section 1).

        The mean obeys $m_n = m_{n-1} + \frac{1+g}{n+g}(x_n - m_{n-1})$, because
        $\sum_{s\le n} w_s = \Gamma(n+1+g)/((1+g)\Gamma(n))$.  This is the only statement of what a layer
        does; everything else in the package is derived from it or tested against it.
        """
        relay, residual, g = Fraction(self.relay), Fraction(self.residual), Fraction(self.position)
        mean = Fraction(0)
        for n, value in enumerate(values, start=1):
            x = Fraction(value)
            mean += (1 + g) / (n + g) * (x - mean)
            yield residual * x + relay * mean


@dataclass(frozen=True)
class RelayModel:
    r"""A prompt of P differing tokens and a stack of relay layers (THEORY section 1).

    The difference between the two runs starts as 1 on the prompt and 0 after it.  After the last layer
    the *influence* is $D(t) = x_{P+t}$, where $t \ge 1$ counts the tokens of the common continuation.

    Parameters
    ----------
    prompt
        Number of prompt tokens P, an integer of at least 1.
    layers
        At least one `Layer`; any iterable, kept as a tuple.  Their order does not matter (THEORY section 2).

    Raises
    ------
    TypeError
        For a prompt that is not an integer, and for layers that are not `Layer` objects.
    ValueError
        For a prompt below 1 and for an empty stack.

    Examples
    --------
    >>> model = RelayModel(prompt=2, layers=[Layer(1), Layer(1)])
    >>> model.depth
    2
    >>> [str(x) for x in model.differences(4)]  # the recursion itself, exactly
    ['4', '4', '20/9', '43/24']
    """

    prompt: int
    layers: Sequence[Layer]

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt", positive_integer("prompt", self.prompt))
        if isinstance(self.layers, Layer):
            raise TypeError("layers must be a sequence of Layer objects, got a single Layer; pass [layer]")
        try:
            layers = tuple(self.layers)
        except TypeError:
            raise TypeError(f"layers must be a sequence of Layer objects, got {show(self.layers)}") from None
        if not layers:
            raise ValueError("layers must hold at least one Layer, got none")
        for i, layer in enumerate(layers):
            if not isinstance(layer, Layer):
                raise TypeError(f"layers must be Layer objects, got {show(layer)} at index {i}")
        object.__setattr__(self, "layers", layers)

    @classmethod
    def uniform(
        cls, prompt: int, depth: int, relay: Number, residual: Number = 1, position: Number = 0
    ) -> "RelayModel":
        """Return a model of `depth` equal layers.

        >>> RelayModel.uniform(prompt=64, depth=2, relay=0.5) == RelayModel(64, [Layer(0.5)] * 2)
        True
        """
        return cls(prompt, (Layer(relay, residual, position),) * positive_integer("depth", depth))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Every cache asks for it, and hashing a Fraction takes Python a microsecond."""
        return hash((self.prompt, self.layers))

    @property
    def depth(self) -> int:
        """Number of layers L."""
        return len(self.layers)

    @cached_property
    def rational(self) -> tuple[tuple[Fraction, Fraction, Fraction], ...]:
        """The triples (relay, residual, position) of the layers as exact fractions."""
        return tuple((Fraction(l.relay), Fraction(l.residual), Fraction(l.position)) for l in self.layers)

    @property
    def saturation(self) -> Fraction:
        r"""The difference on the prompt itself, $f(1) = \prod_l (\rho_l + \lambda_l)$ (THEORY section 2).

        >>> RelayModel.uniform(prompt=1, depth=3, relay=1).saturation
        Fraction(8, 1)
        """
        return self.eigenvalue(1)

    def eigenvalue(self, n: Number) -> Fraction:
        r"""Return $f(n) = \prod_l \bigl(\rho_l + \lambda_l \frac{1+g_l}{n+g_l}\bigr)$ (THEORY section 2).

        This is the eigenvalue at position n of the whole stack, and the weight of token n on itself.
        `n` is any real number other than a pole $-g_l$.

        >>> RelayModel.uniform(prompt=1, depth=2, relay=1).eigenvalue(2)
        Fraction(9, 4)
        """
        z = Fraction(real("n", n))
        product = Fraction(1)
        for relay, residual, g in self.rational:
            if z + g == 0:
                raise ValueError(f"n must not be a pole -position of a layer, got {show(n)}")
            product *= residual + relay * (1 + g) / (z + g)
        return product

    def differences(self, length: int) -> list[Fraction]:
        """Return $x_1, ..., x_{length}$ after the last layer, by the recursion, exactly (THEORY section 1).

        Entry `P + t - 1` is D(t).  Costs O(L length) rational operations on numbers whose size grows in
        proportion to `length`: for checks and teaching; `influence_fraction` is the fast way.
        """
        count = positive_integer("length", length)
        values: Iterable[Number] = [int(n < self.prompt) for n in range(count)]
        for layer in self.layers:
            values = layer.apply(values)
        return [Fraction(value) for value in values]

    def with_prompt(self, prompt: int) -> "RelayModel":
        """Return the same stack of layers behind a prompt of another length.

        >>> RelayModel.uniform(prompt=64, depth=1, relay=1).with_prompt(8).prompt
        8
        """
        return replace(self, prompt=prompt)
