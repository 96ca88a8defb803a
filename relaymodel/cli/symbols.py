"""The command that derives the model's formulas."""

import re
from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from relaymodel.checks import show
from relaymodel.cli.inputs import announce
from relaymodel.cli.numbers import columns_of, number, parts, whole
from relaymodel.cli.options import MAX_DEPTH, MODEL, OUTPUT, Heads, Json, flag, option, refuse_beside_heads
from relaymodel.cli.output import print_json, say
from relaymodel.display import latex_document

if TYPE_CHECKING:
    from relaymodel.derivation import Derivation, DerivationStep, HeadDerivation
    from relaymodel.model import Head

SHORT = 4
"""Depth up to which the closed form, written out in full, still fits a few lines."""

LARGEST_NUMBER = 10**300
"""Beyond, the formulas' numbers have more digits than Python prints."""

SECONDS = 3e-4
"""Of a derivation per square of its depth: measured from 100 to 400 layers."""

OF_ONE_HEAD = {"relay": "equal", "position": 0, "recency": 0}
"""What a layer of one head has, with its defaults here."""

TAKEN = ("P", "t", "N", "n", "z", "O", "e", "E", "I")
"""Symbols of the formulas themselves, and letters that SymPy reads otherwise."""


def _values(name: str, text: str) -> Any:
    """Return numbers and symbols, one for all layers or a list, or the words equal and different as they are.

    >>> _values("--relay", "a,1/3")
    [a, Fraction(1, 3)]
    """
    if text in ("equal", "different"):
        return text
    values = [_value(name, part) for part in parts(text)]
    return values if len(values) > 1 else values[0]


def _value(name: str, text: str) -> Any:
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,30}", text) or text.lower() in ("nan", "inf", "infinity"):
        value = number(name, text)
        if value and not 1 <= LARGEST_NUMBER * abs(Fraction(value)) <= LARGEST_NUMBER**2:
            raise ValueError(f"{name} must be 0 or from 1e-300 to 1e300 in size in a formula, got {show(text)}")
        return value
    if text in TAKEN:
        raise ValueError(f"{name} must be other symbols than {', '.join(TAKEN)}, which mean something else, got {text}")
    from relaymodel.derivation.notation import symbol

    return symbol(text)


Symbols = option("X[,X...]|equal|different", "Likewise.", _values, MODEL)


def derive(
    *,
    depth: Annotated[int | None, option("L", "Number of layers.  [default: 3]", whole(MAX_DEPTH), MODEL)] = None,
    relay: Annotated[
        Any,
        option("X[,X...]|equal|different", "Numbers, or symbols such as a,b.  [default: equal]", _values, MODEL),
    ] = None,
    residual: Annotated[Any, Symbols] = 1,
    position: Annotated[
        Any, option("X[,X...]|equal|different", "Numbers above -1, or symbols.  [default: 0]", _values, MODEL)
    ] = None,
    recency: Annotated[
        Any, option("X[,X...]|equal|different", "Numbers below 1, or symbols.  [default: 0]", _values, MODEL)
    ] = None,
    sink: Annotated[Any, Symbols] = 0,
    heads: Heads = None,
    order: Annotated[int, option("K", "Order of the series in 1/log t.", whole(64), OUTPUT)] = 3,
    steps: Annotated[bool, flag("Show how it follows, step by step.", OUTPUT)] = False,
    latex: Annotated[
        bool, flag("Print LaTeX in lines that fit a page (needs amsmath); with --json, add it.", OUTPUT)
    ] = False,
    document: Annotated[bool, flag("Print a whole LaTeX document, for pdflatex.", OUTPUT)] = False,
    json: Json = False,
) -> None:
    """Derive the closed form of D(t).

    It is a formula in the symbols P (prompt tokens) and t (continuation token), exact for every t; with it come the
    local exponent and the series of both at large t. With a recency, a sink or several heads it is a contour integral
    in place of a closed form. --json gives formulas that SymPy reads.
    """
    from relaymodel.derivation import derive
    from relaymodel.model import Layer, RelayModel

    single = dict(zip(OF_ONE_HEAD, (relay, position, recency), strict=True))
    values = {"residual": residual, "sink": sink}
    if heads is None:
        values |= {name: default if single[name] is None else single[name] for name, default in OF_ONE_HEAD.items()}
    else:
        refuse_beside_heads({f"--{name}": given for name, given in single.items()})
        for name, given in values.items():
            if not all(isinstance(x, (int, float, Fraction)) for x in (given if isinstance(given, list) else [given])):
                raise ValueError(f"--{name} must be numbers beside --heads, got {given}")
        values["heads"] = [tuple(map(_exact, layer)) for layer in heads]
    lists = [(f"--{name}", column) for name, column in values.items() if isinstance(column, list)]
    L = columns_of(lists, depth, default=3)
    announce(SECONDS * L**2)
    if heads is None:
        derivation: Derivation | HeadDerivation = derive(L, **values)
    else:
        columns = {name: x if isinstance(x, list) and len(x) > 1 else [_one(x)] * L for name, x in values.items()}
        layers = tuple(Layer(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
        derivation = derive(RelayModel(1, layers))
    if json:
        print_json(_derivation(derivation, order, steps=steps, latex=latex))
    elif document:
        say(latex_document(_latex(derivation, order, steps=steps)), end="")
    elif latex:
        say(_latex(derivation, order, steps=steps))
    elif steps:
        say("\n".join(map(_step, enumerate(derivation.steps, start=1))))
    else:
        say(_summary(derivation, order))


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _exact(head: "Head") -> "Head":
    """Return a head with decimals as they were typed, as fractions."""
    given = {item.name: getattr(head, item.name) for item in fields(head)}
    return replace(head, **{name: Fraction(str(x)) for name, x in given.items() if isinstance(x, float)})


def _summary(derivation: "Derivation | HeadDerivation", order: int) -> str:
    from relaymodel.derivation import Derivation

    limit = derivation.limit
    parts = [
        f"influence D(t) of a prompt of P tokens, after {derivation.depth} layers",
        "\n".join(f"  {_equation(item)}" for item in derivation.equations),
    ]
    if not isinstance(derivation, Derivation):
        parts.append("(f is the symbol of the layers; a contour serves in place of a closed form)")
    elif derivation.depth <= SHORT:
        parts += ["written out", f"  D(t) = {derivation.closed_form}"]
        parts += ["in harmonic numbers", f"  D(t) = {derivation.harmonic_form}"]
        parts += ["local exponent", f"  alpha(t) = {derivation.local_exponent}"]
    else:
        parts.append("(--json gives it written out, and the local exponent)")
    parts += ["at large t", f"  {derivation.asymptotic_series(order)}", f"  {derivation.exponent_series(order)}"]
    parts += ["limit", f"  alpha -> {limit.exponent}", f"  D ~ {limit.leading}"]
    return "\n\n".join(parts)


def _step(numbered: "tuple[int, DerivationStep]") -> str:
    number, step = numbered
    equations = "".join(f"      {_equation(item)}\n" for item in step.equations)
    return f"{number}. {step.title}\n   {step.text}\n{equations}"


def _equation(item: Any) -> str:
    """Return an equation or a series as text."""
    return f"{item.lhs} = {item.rhs}" if hasattr(item, "lhs") else str(item)


def _latex(derivation: "Derivation | HeadDerivation", order: int, *, steps: bool) -> str:
    """Return the formulas, or the steps, in LaTeX, below what their symbols mean."""
    from relaymodel.derivation import Derivation
    from relaymodel.derivation.layout import align, introduction
    from relaymodel.derivation.notation import ALPHA, D
    from relaymodel.derivation.steps import equation

    formulas: list[Any] = [*derivation.equations]
    if isinstance(derivation, Derivation) and derivation.depth <= SHORT:
        formulas += [equation(D, derivation.closed_form), equation(ALPHA, derivation.local_exponent)]
    formulas += [derivation.asymptotic_series(order), derivation.exponent_series(order)]
    found = derivation.latex() if steps else align(formulas)
    return f"{introduction(derivation.parameters, derivation.depth, found)}\n{found}"


def _derivation(derivation: "Derivation | HeadDerivation", order: int, *, steps: bool, latex: bool) -> dict[str, Any]:
    """Return the derivation as text that SymPy reads."""
    from relaymodel.derivation import Derivation

    limit = derivation.limit
    result: dict[str, Any] = {"depth": derivation.depth}
    if isinstance(derivation, Derivation):
        result |= {name: list(map(str, getattr(derivation, name))) for name in ("relay", "residual", "position")}
        result |= {name: str(getattr(derivation, name)) for name in ("closed_form", "harmonic_form", "local_exponent")}
    else:
        result["layers"] = [
            {
                "residual": str(layer.residual),
                "sink": str(layer.sink),
                "heads": [{name: str(getattr(head, name)) for name in OF_ONE_HEAD} for head in layer.heads],
            }
            for layer in derivation.layers
        ]
        result |= {name: str(getattr(derivation, name)) for name in ("symbol", "plateau")}
        result["contour_form"] = str(derivation.contour_form.rhs)
    for name, series in (
        ("asymptotic", derivation.asymptotic_series(order)),
        ("exponent_series", derivation.exponent_series(order)),
    ):
        result[name] = {"expression": str(series.expression), "error": str(series.error)}
    result["limit"] = {"exponent": str(limit.exponent), "log_power": limit.log_power, "leading": str(limit.leading)}
    if steps:
        result["steps"] = [
            {"title": step.title, "text": step.text, "equations": list(map(_equation, step.equations))}
            for step in derivation.steps
        ]
    if latex:
        result["latex"] = _latex(derivation, order, steps=steps)
    return result
