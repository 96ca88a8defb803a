"""The report as one self-contained HTML page, readable on a phone, on a projector and in print."""

import base64
import platform
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy
from markupsafe import Markup, escape

import relaymodel
from relaymodel.display import mathml, plain

if TYPE_CHECKING:
    from relaymodel.report import Report

FOLDED_ROWS = 8
"""Tables of more rows are folded."""
LONG_FORMULA = 40
"""Formulas of more characters have a line of their own on a phone."""

MARKS = re.compile(
    r"\\(?P<sign>[\\$*])|\$\$ (?P<display>.+)|\$(?P<formula>.+?)\$|\*\*(?P<bold>.+?)\*\*"
    r"|(?<![\w.])(?P<mantissa>\d+(?:\.\d+)?)e\+?(?P<power>-?\d+)(?![\w.]*\w)"
)


def render(report: "Report", folder: Path) -> str:
    """Return the page; figures are read from `folder` and embedded."""

    def embedded(name: str) -> str:
        data = base64.b64encode((folder / "figures" / f"{name}.svg").read_bytes()).decode()
        return f"data:image/svg+xml;base64,{data}"

    loader = jinja2.PackageLoader("relaymodel.report", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"text": text, "cell": cell, "embedded": embedded, "plain": plain}
    made = f"relaymodel {relaymodel.__version__}, Python {platform.python_version()}, NumPy {numpy.__version__}"
    return environment.get_template("page.html").render(
        report=report, folded=FOLDED_ROWS, made=f"{made}, {date.today().isoformat()}"
    )


def text(words: str) -> Markup:
    r"""Return words as HTML: formulas between `$` or, displayed, after `$$`, bold ones between `**`, and powers of ten.

    A sign behind a backslash stands for itself (see `literal`).

    >>> print(text("**a** < 1e9 \\$"))
    <b>a</b> &lt; <math><msup><mn>10</mn><mn>9</mn></msup></math> $
    """

    def marked(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "sign":
                return escape(found["sign"])
            case "display":
                return f'<span class="display">{mathml(found["display"], display=True)}</span>'
            case "formula":
                return (
                    f'<span class="{"long" * (len(found["formula"]) > LONG_FORMULA)}">{mathml(found["formula"])}</span>'
                )
            case "bold":
                return f"<b>{text(found['bold'])}</b>"
        factor = "" if found["mantissa"] == "1" else found["mantissa"] + r"\times "
        return mathml(f"{factor}10^{{{int(found['power'])}}}")

    pieces, end = [], 0
    for found in MARKS.finditer(words):
        pieces += [escape(words[end : found.start()]), marked(found)]
        end = found.end()
    return Markup("".join([*pieces, escape(words[end:])]))


def cell(value: Any) -> str | Markup:
    """Return a cell of a table: whole, floats to four digits."""
    if isinstance(value, bool):
        return "✓" if value else "✗"
    return text(f"{value:.4g}" if isinstance(value, float) else str(value))
