"""How results are shown: figures with their errors, tables in HTML, text in LaTeX."""

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any
from xml.etree import ElementTree

from relaymodel.checks import PLAIN_NUMBER, choice, one_line, show

STYLES = ("text", "markdown", "latex")
LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: "\\" + sign for sign in "&%#_${}"},
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "κ2": r"$\kappa_2$",
    "ω": r"$\omega$",
    "σ": r"$\sigma$",
    "κ": r"$\kappa$",
    "μ": r"$\mu$",
    "ρ": r"$\rho$",
    "λ": r"$\lambda$",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "∞": r"$\infty$",
    "—": "--",
}

SCRIPTS = {"msub": "_", "munder": "_", "msup": "^", "mover": "^", "msubsup": "_^", "munderover": "_^", "mfrac": "/"}
"""What joins the parts of such elements of MathML where all stands on one line."""
RELATIONS = frozenset("=<>≤≥∼→≈")


def figure(value: float, error: float) -> str:
    """Return `value ± error` to two digits of the error.

    >>> figure(0.53124, 0.0123)
    '0.531 ± 0.012'
    >>> figure(0.5, 3e-9)
    '0.5 ± 3e-09'
    """
    if not math.isfinite(error) or error < 1e-6:
        return f"{value:.9g} ± {error:.1g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def brief(result: Any, *left_out: str) -> str:
    """Return a dataclass in one line: of arrays the shape alone, without provenance and what is `left_out`.

    >>> from relaymodel.model import Head
    >>> brief(Head(0.5, recency=0.7), "decay")
    'Head(relay = 0.5, position = 0, recency = 0.7)'
    """
    shown = []
    for name in (each.name for each in fields(result) if each.name not in ("provenance", *left_out)):
        value = getattr(result, name)
        shape = getattr(value, "shape", None)
        shown.append(f"{name} = {show(value)}" if shape is None else f"{name}: {' x '.join(map(str, shape))}")
    return f"{type(result).__name__}({', '.join(shown)})"


def latex_document(body: str) -> str:
    """Return a whole document, which pdflatex takes, around a fragment that needs amsmath."""
    head = "\\documentclass{article}\n\\usepackage{amsmath}\n\\allowdisplaybreaks\n\\begin{document}\n\\noindent\n"
    return f"{head}{body.rstrip()}\n\\end{{document}}\n"


def power(log10: float, digits: int = 4) -> str:
    """Return a positive number given by its decimal logarithm, of any size.

    >>> power(2.0), power(148.3), power(-400.5, 2), power(float("-inf"))
    ('100', '1.995e+148', '3.2e-401', '0')
    """
    if math.isnan(log10):
        return "—"
    if math.isinf(log10):
        return "0" if log10 < 0 else "∞"
    if abs(log10) < 300:
        return f"{10**log10:.{digits}g}"
    whole = math.floor(log10)
    mantissa = round(10 ** (log10 - whole), digits - 1)
    whole, mantissa = (whole + 1, 1.0) if mantissa >= 10 else (whole, mantissa)
    return f"{mantissa:g}e{whole:+d}"


PAPER_WIDTH = 60
"""Letters in a line of LaTeX's article at 10 points."""
MOST_LINES = 36
"""Rows of a table on a page."""


def typeset(
    head: Sequence[str], rows: Iterable[Sequence[str]], style: str = "text", columns: str = "", room: int = PAPER_WIDTH
) -> str:
    r"""Return a table as aligned text, Markdown or LaTeX, columns of numbers to the right.

    `style` is one of `STYLES`.  In LaTeX a table wider than `room` letters is cut into several, each with the first
    column, unless `columns` says how wide they are, such as "lp{0.5\linewidth}"; a longer one than a page likewise.

    >>> print(typeset(["t", "what"], [["1", "a"], ["1.5e+10", "b"]]))
          t  what
          1  a
    1.5e+10  b
    >>> print(typeset(["t", "what"], [["1.5e+10", "a|b"]], "markdown"))
    | t | what |
    | ---: | :--- |
    | 1.5e+10 | a\|b |
    >>> print(typeset(["t", "what"], [["1.5e+10", "50 %"]], "latex"))
    \begin{tabular}{rl}
    t & what \\
    \hline
    $1.5\times 10^{10}$ & 50 \% \\
    \end{tabular}
    """
    choice("style", style, STYLES)
    lines = [list(map(one_line, row)) for row in rows]
    numeric = [all(PLAIN_NUMBER.fullmatch(row[k]) or row[k] in ("", "-") for row in lines) for k in range(len(head))]
    if style == "latex":
        found = []
        for chosen in [list(range(len(head)))] if columns else _within([head, *lines], room):
            spec = columns or "".join("r" if numeric[k] else "l" for k in chosen)
            body = [" & ".join(latex(row[k]) for k in chosen) + r" \\" for row in (head, *lines)]
            for first in range(1, max(2, len(body)), MOST_LINES):
                part = [body[0], r"\hline", *body[first : first + MOST_LINES]]
                found.append("\n".join([rf"\begin{{tabular}}{{{spec}}}", *part, r"\end{tabular}"]))
        return "\n\n".join(found)
    if style == "markdown":
        cells = [[cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row] for row in (head, *lines)]
        cells.insert(1, ["---:" if right else ":---" for right in numeric])
        return "\n".join(f"| {' | '.join(row)} |" for row in cells)
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in (head, *lines)
    )


def _within(lines: Sequence[Sequence[str]], room: int) -> list[list[int]]:
    """Return which columns go together, each time with the first, for tables no wider than `room` letters."""
    powers = re.compile("[0-9]e[+-]?[0-9]")  # are wider in print
    widths = [
        2 + max(len(cell) + 2 * bool(powers.search(cell)) for cell in column) for column in zip(*lines, strict=True)
    ]
    groups, left = [[0]], room - widths[0]
    for k in range(1, len(widths)):
        if widths[k] > left and len(groups[-1]) > 1:
            groups, left = [*groups, [0]], room - widths[0]
        groups[-1].append(k)
        left -= widths[k]
    return groups


def table(caption: str, rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Return an HTML table, everything escaped; without a head, the first cell of a row is its name."""

    def line(cells: Sequence[object], names: int) -> str:
        kinds = ("th" if i < names else "td" for i in range(len(cells)))
        inner = (f"<{kind}>{html.escape(str(cell))}</{kind}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(inner)}</tr>"

    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    top = f"<thead>{line(head, len(head))}</thead>" if head else ""
    return f"<table>{title}{top}<tbody>{''.join(line(row, not head) for row in rows)}</tbody></table>"


def mathml(formula: str, *, display: bool = False) -> str:
    r"""Return a LaTeX formula as MathML, which browsers set themselves: no script, no font, no picture.

    A formula with a `\tag` is numbered with it.

    >>> mathml("x^2")
    '<math><msup><mi>x</mi><mn>2</mn></msup></math>'

    Raises
    ------
    ValueError
        If it is no formula.
    """
    from math_core import LatexError, LatexToMathML

    numbered = r"\begin{equation}" + formula + r"\end{equation}" if r"\tag" in formula else formula
    try:
        return LatexToMathML(fancy_error=False).convert_with_local_state(numbered, displaystyle=display)
    except LatexError as error:
        raise ValueError(f"formula must be LaTeX, got {formula!r}: {one_line(str(error))}") from None


def plain(text: str) -> str:
    r"""Return text whose formulas, between dollar signs, are written in characters that every terminal has.

    >>> plain(r"$D \sim A\,t^{\beta-1}$, at most $10^{9.5}$, $\prod_l \lambda_l/2$, $\frac{1}{2}$")
    'D ∼ A t^(β-1), at most 10^9.5, ∏_lλ_l/2, 1/2'
    """

    def written(node: ElementTree.Element) -> str:
        parts = [written(child) for child in node]
        if node.tag in SCRIPTS:
            base, *scripts = (part if re.fullmatch(r"-?[\w.]*|\W", part) else f"({part})" for part in parts)
            return base + "".join(map("".join, zip(SCRIPTS[node.tag], scripts, strict=True)))
        sign = (node.text or " " * (node.tag == "mspace")).replace("−", "-")
        whole = (f" {sign} " if sign in RELATIONS else sign) + "".join(parts)
        return f"√({whole})" if node.tag == "msqrt" else whole

    def replaced(found: re.Match[str]) -> str:
        entities = re.sub(r"&(?!lt;|gt;|amp;)\w+;", " ", mathml(found[1]))  # such as &ApplyFunction;
        words = " ".join(written(ElementTree.fromstring(entities)).split())
        return words.replace("( ", "(")

    return re.sub(r"\$(.+?)\$", replaced, text)


def facts(known: Mapping[str, object]) -> str:
    """Return an HTML paragraph with a line for each fact, everything escaped."""
    return f"<p>{'<br>'.join(html.escape(f'{key}: {value}') for key, value in known.items())}</p>"


def latex(text: str) -> str:
    r"""Return text as LaTeX prints it: nothing in it is a command; a number with an exponent is a formula.

    >>> print(latex(r"50 %, ω of \input{x}"), latex("-1.5e+07"))
    50 \%, $\omega$ of \textbackslash{}input\{x\} $-1.5\times 10^{7}$
    """
    mantissa, e, exponent = text.partition("e")
    if e and PLAIN_NUMBER.fullmatch(text):
        return rf"${mantissa}\times 10^{{{int(exponent)}}}$"
    return re.sub("|".join(map(re.escape, LATEX)), lambda found: LATEX[found[0]], one_line(text))
