r"""LaTeX that fits a page: formulas broken into lines, and their symbols explained.

Formulas are those that `notation.latex` prints.  A fraction or a bracket too wide for a line is opened: the factors of
a numerator follow it, and brackets of fixed size take the place of growing ones, which may not go over lines.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from relaymodel.derivation.notation import latex

LINE_WIDTH = 46.0
"""Width of a line, in letters: what fits the text of the narrowest common class, article in 10 points (345 pt)."""

MEANINGS = (
    (r"\psi", r"$\psi$ is the digamma function, $\psi^{(k)}$ its derivative of order $k$"),
    ("H_", r"$H_n$ is the harmonic number, $H_n^{(k)}$ that of order $k$, continued to real $n$"),
    (r"\Gamma", r"$\Gamma$ is the gamma function"),
    ("f{\\left(z", "$f$ is the symbol of the stack, its eigenvalue at position $z$"),
    (r"\log", r"$\log$ is the natural logarithm"),
    ("O\\left", "$O$ is meant for large $t$ at fixed $P$"),
)


def align(formulas: Iterable[Any]) -> str:
    """Return an `align*` of equations and series (needs amsmath), in lines that fit a page."""
    lines = (line for formula in formulas for line in broken(formula if isinstance(formula, str) else latex(formula)))
    body = " \\\\\n".join(f"& {line}" for line in lines)
    return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"


def introduction(parameters: Mapping[str, Sequence[Any]], depth: int, formulas: str) -> str:
    """Return a paragraph that says what the symbols of `formulas` stand for, the layers' parameters by name."""
    strengths = []
    for name, values in parameters.items():
        several = len(set(values)) > 1
        strengths.append(f"{name}{'s' * several} ${', '.join(map(latex, values if several else values[:1]))}$")
    found = "; ".join(meaning for sign, meaning in MEANINGS if sign in formulas)
    return (
        f"$D(t)$ is the influence of a prompt of $P$ tokens behind {depth} layer{'s' * (depth > 1)}, on "
        "token $t$ of the continuation, in units of the prompts' difference per token. The layers have "
        rf"{', '.join(strengths)}. $\alpha(t) = -d\log D/d\log t$ is the local exponent; {found}."
    )


def broken(formula: str, room: float = LINE_WIDTH) -> list[str]:
    r"""Return a formula in lines no wider than `room` letters, as far as its terms and factors allow.

    >>> broken(r"D = \frac{P \left(a + b\right)}{P + t}")
    ['D = \\frac{P \\left(a + b\\right)}{P + t}']
    >>> broken(r"D = \frac{P \left(a + b + c\right)}{P + t}", room=14)
    ['D = \\frac{P}{P + t}', '\\qquad {}\\times \\left(a + b + c\\right)']
    """
    if width(formula) <= room:
        return [formula]
    lines = [""]
    for piece in _pieces(formula, room - 4):
        if lines[-1] and width(lines[-1] + piece) > room:
            lines.append(r"\qquad {}")
        lines[-1] += piece
    return [line.strip() for line in lines]


def width(formula: str) -> float:
    r"""Return how wide a formula is, about, in letters.

    >>> width(r"\frac{a + b}{2}"), width(r"\psi^{\left(1\right)}\left(t\right)")
    (5.0, 5.2)
    """
    total = 0.0
    for kind, text, *parts in _nodes(formula):
        if kind == "frac":
            total += 0.5 + max(width(part) for part in parts[:2])
        elif kind == "bracket":
            total += 1.5 + width(parts[1]) + 0.7 * width(parts[3])
        elif kind == "sign":
            total += 2.5
        else:
            plain = re.sub(r"\\[Bb]ig[lr]?|\\q?quad|\\[,;!]|\{\}", "", text)
            small = sum(0.7 * width(part[1:-1]) for part in re.findall(r"[_^](\{[^{}]*\})", plain))
            plain = re.sub(r"[_^]\{[^{}]*\}", "", plain).replace(r"\log", "log")
            plain = re.sub(r"\{\\left\((.*?)\\right\)\}", r"(\1)", plain)
            total += small + len(re.sub(r"[\s{}]", "", re.sub(r"\\[A-Za-z]+", "x", plain)))
    return round(total, 1)


def _nodes(formula: str) -> Iterator[tuple[str, ...]]:
    """Yield the parts of a formula, each with its kind and its text first.

    ("frac", text, numerator, denominator), ("bracket", text, open, inside, close, power), ("sign", text) between terms,
    and ("plain", text).
    """
    start = at = 0
    while at < len(formula):
        found: tuple[str, ...] | None = None
        end = at + 1
        if formula.startswith(r"\frac{", at):
            middle = _closed(formula, at + 5)
            end = _closed(formula, middle)
            found = "frac", formula[at:end], formula[at + 6 : middle - 1], formula[middle + 1 : end - 1]
        elif formula.startswith(r"\left", at) and formula[at + 5] in "([":
            close, inner_end = _right(formula, at)
            end = close
            power = ""
            if formula.startswith("^{", end):
                end = _closed(formula, end + 1)
                power = formula[close + 2 : end - 1]
            inside = formula[at + 6 : inner_end]
            found = "bracket", formula[at:end], formula[at + 5], inside, formula[inner_end + 6], power
        elif formula[at] == "{":
            end = _closed(formula, at)
        elif formula[at] in "+-=" and formula.startswith(" ", at + 1) and (at == 0 or formula[at - 1] in " ]})t"):
            end = at + 2
            found = "sign", formula[at:end]
        elif formula[at] == "\\" and formula[at + 1 : at + 2].isalpha():
            end = at + 1 + len(re.match("[A-Za-z]+", formula[at + 1 :])[0])  # type: ignore[index]
        if found is not None:
            if formula[start:at]:
                yield "plain", formula[start:at]
            yield found
            start = end
        elif formula[at] == " ":  # between factors
            yield "plain", formula[start:end]
            start = end
        at = end
    if formula[start:]:
        yield "plain", formula[start:]


def _closed(text: str, at: int) -> int:
    """Return where the group that opens at `at` has ended."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    raise ValueError(f"formula must have balanced braces, got {text}")


def _right(text: str, at: int) -> tuple[int, int]:
    r"""Return where the \left at `at` has ended, and where its \right begins."""
    depth = 0
    for found in re.finditer(r"\\(left|right)(?![a-z])", text[at:]):
        depth += 1 if found[1] == "left" else -1
        if depth == 0:
            return at + found.end() + 1, at + found.start()
    raise ValueError(f"formula must have balanced brackets, got {text}")


def _factors(formula: str) -> Iterator[tuple[str, ...]]:
    r"""Yield the parts of a formula, those of one factor, such as \Gamma and its bracket, as one ("plain", text)."""
    plain = ""
    for node in _nodes(formula):
        if node[0] == "sign" or (node[0] != "plain" and not plain):
            if plain:
                yield "plain", plain
            plain = ""
            yield node
            continue
        plain += node[1]
        if plain.endswith(" "):
            yield "plain", plain
            plain = ""
    if plain:
        yield "plain", plain


def _pieces(formula: str, room: float) -> list[str]:
    """Return the parts between which a line may end."""
    pieces = [""]
    for kind, text, *parts in _factors(formula):
        if kind == "sign":
            if pieces[-1]:
                pieces.append("")
            pieces[-1] += text
        elif kind == "plain" or width(text) <= room:
            _append(pieces, [text], room)
        elif kind == "bracket":
            power = f"^{{{parts[3]}}}" if parts[3] else ""
            _append(pieces, _bracketed(parts[0], _pieces(parts[1], room), parts[2] + power), room)
        elif width(parts[1]) > room / 2:
            _append(pieces, _bracketed("[", _pieces(parts[0], room), "]"), room)
            pieces.append(r"\Big/")
            _append(pieces, _bracketed("[", _pieces(parts[1], room), "]"), room)
        else:
            numerator, denominator = parts
            factors = list(_factors(numerator))
            if any(factor[0] == "sign" for factor in factors):
                _append(pieces, [rf"\frac{{1}}{{{denominator}}}"], room)
                _append(pieces, _bracketed("(", _pieces(numerator, room), ")"), room)
                continue
            first = factors[0][1] if factors[0][0] == "plain" else ""
            _append(pieces, [rf"\frac{{{first.strip() or 1}}}{{{denominator}}} "], room)
            _append(pieces, _pieces(numerator.removeprefix(first), room), room)
    return pieces


def _append(pieces: list[str], more: list[str], room: float) -> None:
    """Multiply the last piece by others, in a piece of their own if they are too wide together."""
    if pieces[-1].endswith(" ") and pieces[-1] not in ("+ ", "- ", "= ") and width(pieces[-1] + more[0]) > room:
        pieces.append(r"\times ")
    pieces[-1] += more[0]
    pieces += more[1:]


def _bracketed(opening: str, inside: list[str], closing: str) -> list[str]:
    """Return pieces in brackets of fixed size."""
    inside = [rf"\Bigl{opening}{inside[0]}", *inside[1:]]
    return [*inside[:-1], rf"{inside[-1]}\Bigr{closing}"]
