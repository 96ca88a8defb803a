"""The command that derives the model's formulas."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.cli.numbers import columns_of, numbers, whole
from relaymodel.cli.options import DEEPEST, Json
from relaymodel.cli.output import print_json

if TYPE_CHECKING:
    from relaymodel.derivation import Derivation

SHORT = 4
"""Depth up to which the closed form, written out in full, still fits a few lines."""


def derive(
    depth: Annotated[str | None, typer.Option("--depth", metavar="L", help="Number of layers.  [default: 3]")] = None,
    relay: Annotated[
        str, typer.Option("--relay", metavar="X[,X...]|equal|different", help="Numbers, or symbols.")
    ] = "equal",
    residual: Annotated[
        str, typer.Option("--residual", metavar="X[,X...]|equal|different", help="Numbers, or symbols.")
    ] = "1",
    position: Annotated[
        str, typer.Option("--position", metavar="X[,X...]|equal|different", help="Numbers above -1, or symbols.")
    ] = "0",
    order: Annotated[str, typer.Option("--order", metavar="K", help="Order of the series in 1/log t.")] = "3",
    steps: Annotated[bool, typer.Option("--steps", help="Show how it follows, step by step.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX (needs amsmath).")] = False,
    json: Json = False,
) -> None:
    """Derive the closed form of D(t).

    It is a formula in the symbols P (prompt tokens) and t (continuation token), exact for every t; with it come the
    local exponent and the series of both at large t. --json gives formulas that SymPy reads.
    """
    from relaymodel.derivation import derive

    terms = whole("--order", order, most=64)
    given = {"--relay": relay, "--residual": residual, "--position": position}
    values: dict[str, Any] = {
        name.removeprefix("--"): text if text in ("equal", "different") else numbers(name, text)
        for name, text in given.items()
    }
    L = None if depth is None else whole("--depth", depth, most=DEEPEST)
    lists = [(f"--{name}", column) for name, column in values.items() if isinstance(column, list)]
    L = columns_of(lists, L, default=3)
    for name, column in values.items():
        if isinstance(column, list) and len(column) == 1:
            values[name] = column[0]
    derivation = derive(L, **values)
    if json:
        print_json(_derivation(derivation, terms, steps=steps, latex=latex))
    elif latex:
        print(derivation.latex() if steps else _latex(derivation, terms))
    elif steps:
        for i, step in enumerate(derivation.steps, start=1):
            print(f"{i}. {step.title}\n   {step.text}")
            print("".join(f"      {_equation(item)}\n" for item in step.equations))
    else:
        print(_summary(derivation, terms))


def _summary(derivation: "Derivation", order: int) -> str:
    limit = derivation.limit
    parts = [
        f"influence D(t) of a prompt of P tokens, after {derivation.depth} layers",
        "\n".join(f"  {_equation(item)}" for item in (derivation.compact_form, *derivation.definitions)),
    ]
    if derivation.depth <= SHORT:
        parts += ["written out", f"  D(t) = {derivation.closed_form}"]
        parts += ["in harmonic numbers", f"  D(t) = {derivation.harmonic_form}"]
        parts += ["local exponent", f"  alpha(t) = {derivation.local_exponent}"]
    else:
        parts.append("(--json gives it written out, and the local exponent)")
    parts += ["at large t", f"  {derivation.asymptotic_series(order)}", f"  {derivation.exponent_series(order)}"]
    parts += ["limit", f"  alpha -> {limit.exponent}", f"  D ~ {limit.leading}"]
    return "\n\n".join(parts)


def _equation(item: Any) -> str:
    """Return an equation or a series as text."""
    return f"{item.lhs} = {item.rhs}" if hasattr(item, "lhs") else str(item)


def _latex(derivation: "Derivation", order: int) -> str:
    from relaymodel.derivation.notation import latex

    lines = [latex(derivation.compact_form), *map(latex, derivation.definitions)]
    lines.append(rf"D\left(t\right) = {latex(derivation.closed_form)}")
    lines.append(rf"\alpha\left(t\right) = {latex(derivation.local_exponent)}")
    lines += [derivation.asymptotic_series(order).latex(), derivation.exponent_series(order).latex()]
    body = " \\\\\n".join(f"& {line}" for line in lines)
    return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"


def _derivation(derivation: "Derivation", order: int, *, steps: bool, latex: bool) -> dict[str, Any]:
    """Return the derivation as text that SymPy reads."""
    limit = derivation.limit
    result: dict[str, Any] = {"depth": derivation.depth}
    for name in ("relay", "residual", "position"):
        result[name] = list(map(str, getattr(derivation, name)))
    for name in ("closed_form", "harmonic_form", "local_exponent"):
        result[name] = str(getattr(derivation, name))
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
        result["latex"] = derivation.latex() if steps else _latex(derivation, order)
    return result
