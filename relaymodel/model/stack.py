"""A prompt and a stack of layers: the whole model, what is exact about it, and its dictionary for JSON."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from relaymodel.checks import Number, positive_integer, show
from relaymodel.model.layer import OUTSIDE, Layer
from relaymodel.model.notation import layer_as_dict, layer_from_dict

DEEPEST_STACK = 10**6
"""Of equal layers made at once: far beyond any network, and memory for them there is."""


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
        if set(map(type, layers)) != {Layer}:
            for i, layer in enumerate(layers):
                if not isinstance(layer, Layer):
                    raise TypeError(f"layers must be Layer objects, got {show(layer)} at index {i}")
        object.__setattr__(self, "layers", layers)

    @classmethod
    def uniform(
        cls,
        prompt: int,
        depth: int,
        relay: Number,
        residual: Number = 1,
        position: Number = 0,
        recency: Number = 0,
        sink: Number = 0,
    ) -> "RelayModel":
        """Return a model of `depth` equal layers of one head each.

        >>> RelayModel.uniform(prompt=64, depth=2, relay=0.5) == RelayModel(64, [Layer(0.5)] * 2)
        True
        """
        layer = Layer(relay, residual, position, recency, sink)
        if positive_integer("depth", depth) > DEEPEST_STACK:
            raise ValueError(f"depth must be at most {DEEPEST_STACK}, got {show(depth)}")
        return cls(prompt, (layer,) * depth)

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
    def plain(self) -> bool:
        """Whether every layer is that of THEORY section 1: one head, recency 0, no sink."""
        return all(layer.plain for layer in self.layers)

    def demand_plain(self, caller: str) -> None:
        """Raise `ValueError` unless the model is `plain`, for a function `caller` that knows nothing else.

        >>> RelayModel.uniform(64, 2, 0.5, recency=0.5).demand_plain("bracket")
        Traceback (most recent call last):
        ValueError: bracket needs layers of one head with recency 0 and sink 0, got Layer(relay=0.5, residual=1,
        position=0, recency=0.5) in layer 1
        """
        for i, layer in enumerate(self.layers):
            if not layer.plain:
                raise ValueError(
                    f"{caller} needs layers of one head with recency 0 and sink 0, got "
                    f"{' '.join(repr(layer).split())} in layer {i + 1}"
                )

    def demand_solvable(self) -> None:
        """Raise `ValueError` if a head has a decay, which puts it outside the exactly solvable class.

        >>> from relaymodel import Head
        >>> RelayModel(64, [Layer(heads=[Head(0.5, decay=0.9)])]).demand_solvable()
        Traceback (most recent call last):
        ValueError: decay must be 1 for exact values, got 0.9: a head that decays with distance shares no eigenvectors
        with others; simulate and token_weights take it
        """
        for layer in self.layers:
            for head in layer.heads:
                if head.decay < 1:
                    raise ValueError(OUTSIDE.format(show(head.decay)))

    @cached_property
    def rational(self) -> tuple[tuple[Fraction, Fraction, Fraction], ...]:
        """The triples (relay, residual, position) of the layers of a `plain` model as exact fractions."""
        self.demand_plain("the reduction to relay, residual and position")
        return tuple((Fraction(l.relay), Fraction(l.residual), Fraction(l.position)) for l in self.layers)

    @cached_property
    def saturation(self) -> Fraction:
        r"""The difference on the prompt itself, $\prod_l (\rho_l + \sigma_l + \sum_h \lambda_h)$ (THEORY section 10).

        >>> RelayModel.uniform(prompt=1, depth=3, relay=1).saturation
        Fraction(8, 1)
        """
        return math.prod((layer.eigenvalue(1) + Fraction(layer.sink) for layer in self.layers), start=Fraction(1))

    @cached_property
    def plateau(self) -> Fraction:
        r"""What the sinks keep for ever, `saturation` less f(1): D falls to it, to 0 without sinks (THEORY section 10).

        >>> RelayModel.uniform(prompt=1, depth=2, relay=1, sink=1).plateau
        Fraction(5, 1)
        """
        if not any(layer.sink for layer in self.layers):
            return Fraction(0)
        return self.saturation - self.eigenvalue(1)

    def eigenvalue(self, n: Number) -> Fraction:
        r"""Return $f(n) = \prod_l \bigl(\rho_l + \sum_h \lambda_h E_h[u^{n-1}]\bigr)$ (THEORY sections 2 and 10).

        This is the eigenvalue at position n of the whole stack, and the weight of token n on itself (at n = 1 that
        is `saturation`, which has the sinks).  For recency 0 a factor is $\rho + \lambda \frac{1+g}{n+g}$, and `n`
        any real number other than a pole $-g$; for what else `n` may be see `Head.eigenvalue`.

        >>> RelayModel.uniform(prompt=1, depth=2, relay=1).eigenvalue(2)
        Fraction(9, 4)
        """
        return math.prod((layer.eigenvalue(n) for layer in self.layers), start=Fraction(1))

    def differences(self, length: int) -> list[Fraction]:
        """Return $x_1, ..., x_{length}$ after the last layer, by the recursion, exactly (THEORY section 1).

        Entry `P + t - 1` is D(t).  Costs O(L length) rational operations, O(length^2) for each head with a recency,
        on numbers whose size grows in proportion to `length`: for checks and teaching; `influence_fraction` is
        the fast way.
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

    def as_dict(self) -> dict[str, Any]:
        """Return the model as a dictionary that JSON holds without loss: fractions are text, defaults left out.

        >>> RelayModel(64, [Layer(0.5), Layer(Fraction(1, 3), recency=0.7)]).as_dict()
        {'prompt': 64, 'layers': [{'relay': 0.5, 'residual': 1}, {'relay': '1/3', 'recency': 0.7, 'residual': 1}]}
        """
        return {"prompt": self.prompt, "layers": [layer_as_dict(layer) for layer in self.layers]}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "RelayModel":
        """Return the model that `as_dict` wrote; numbers may be text.

        >>> model = RelayModel.uniform(prompt=64, depth=2, relay=0.5, sink=Fraction(1, 7))
        >>> RelayModel.from_dict(model.as_dict()) == model
        True
        """
        if not isinstance(entries, Mapping):
            raise TypeError(f"entries must be a dictionary, got {show(entries)}")
        if set(entries) != {"prompt", "layers"}:
            raise ValueError(f"entries must be 'prompt' and 'layers', got {show(sorted(map(str, entries)))}")
        layers = entries["layers"]
        if isinstance(layers, str) or not isinstance(layers, Sequence):
            raise TypeError(f"layers must be a list of dictionaries, got {show(layers)}")
        return cls(entries["prompt"], [layer_from_dict(layer) for layer in layers])

    def to_json(self) -> str:
        """Return `as_dict` as a JSON document.

        >>> RelayModel.from_json(RelayModel.uniform(64, 6, 0.5).to_json()).depth
        6
        """
        return json.dumps(self.as_dict())

    @classmethod
    def from_json(cls, text: str) -> "RelayModel":
        """Return the model of a JSON document that `to_json` wrote."""
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"text must be a JSON document, got {show(text)} of type {type(text).__name__}")
        try:
            entries = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"text must be a JSON document, got {show(text)}: {error}") from None
        return cls.from_dict(entries)
