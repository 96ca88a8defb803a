"""The report as one self-contained HTML page, readable on a phone and in print."""

import base64
import html
import platform
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy

import relaymodel
from relaymodel.plotting import formula_svg
from relaymodel.report.claim import Claim, DataTable

SHOWN_ROWS = 60  # rows of a table on the page; the CSV has all

CSS = """
:root { color-scheme: light; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --good: #116329; --bad: #a40e26; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 56rem; color: var(--ink); background: #fff;
       font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; line-height: 1.35; margin-top: 2.6rem; }
a { color: #0550ae; } p.meta, figcaption, caption { color: var(--soft); font-size: .9rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; padding: .3rem 0; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid var(--ink); } .summary td, .summary th { text-align: left; white-space: normal; }
.summary td:first-child { white-space: nowrap; }
.scroll { overflow-x: auto; margin: 1rem 0; } figure { margin: 1.2rem 0; } figure img { width: 100%; height: auto; }
.holds { color: var(--good); font-weight: 600; } .fails { color: var(--bad); font-weight: 600; }
.finding { border-left: .25rem solid var(--good); padding: .3rem .8rem; background: #f6f8fa; }
.finding.no { border-color: var(--bad); }
svg.formula { max-width: none; } .display { overflow-x: auto; padding: .2rem 0 .2rem 1.5rem; font-size: 1.05rem; }
details { margin: 1rem 0; } summary { cursor: pointer; color: #0550ae; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } section { break-before: page; }
  .scroll { overflow: visible; } figure, tr { break-inside: avoid; } details:not([open]) > * { display: block; } }
"""

ABSTRACT = (
    "Give two prompts the same continuation. How far apart are the hidden states after t tokens? The linear relay "
    "model, causal averaging with residual connections, answers exactly: $D(t) \\sim A P (\\log t)^{L-1}/t$ behind a "
    "prompt of P tokens and L layers. A theorem bounds the distance in a transformer by $O(P (\\log t)^{L-1}/t)$; the "
    "model shows that the bound cannot be improved. Each statement below was checked when this page was written."
)


def render(claims: Sequence[Claim], folder: Path, seconds: float) -> str:
    """Return the page; figures are read from `folder` and embedded."""
    good = sum(claim.passed for claim in claims)
    rows = "".join(
        f'<tr><td>{_verdict(claim.passed)}</td><td><a href="#claim-{i}">{html.escape(claim.title)}</a><br>'
        f"{_text(claim.finding)}</td></tr>"
        for i, claim in enumerate(claims, 1)
    )
    sections = "".join(_section(i, claim, folder) for i, claim in enumerate(claims, 1))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>relaymodel: {good} of {len(claims)} claims hold</title><style>{CSS}</style></head><body>"
        "<h1>How much of its prompt does a transformer remember?</h1>"
        f"<p>{_text(ABSTRACT)}</p>"
        '<p><a href="explore.html">Move the sliders</a>: the same curves for other prompts, depths and biases, '
        "computed in your browser.</p>"
        f'<p class="meta">{_provenance()}; {len(claims)} claims in {seconds:.0f} s.</p>'
        f'<table class="summary"><tr><th>verdict</th><th>claim and finding: {good} of {len(claims)} hold</th></tr>'
        f"{rows}</table>{sections}</body></html>\n"
    )


def _provenance() -> str:
    return html.escape(
        f"relaymodel {relaymodel.__version__}, Python {platform.python_version()}, NumPy {numpy.__version__}, "
        f"{date.today().isoformat()}"
    )


def _verdict(passed: bool) -> str:
    return '<span class="holds">✓ holds</span>' if passed else '<span class="fails">✗ fails</span>'


def _section(number: int, claim: Claim, folder: Path) -> str:
    paragraphs = [_paragraph(text) for text in claim.explanation]
    story = paragraphs[0] + (
        f"<details><summary>Step by step</summary>{''.join(paragraphs[1:])}</details>" if paragraphs[1:] else ""
    )
    figures = "".join(
        f'<figure><img alt="{html.escape(image.caption)}" src="{_embedded(folder, image.name)}">'
        f"<figcaption>{_text(image.caption)}</figcaption></figure>"
        for image in claim.images
    )
    tables = "".join(_table(table) for table in claim.tables)
    mood = "finding" if claim.passed else "finding no"
    return (
        f'<section id="claim-{number}"><h2>{number}. {html.escape(claim.title)}</h2>'
        f'<p class="{mood}">{_verdict(claim.passed)}: {_text(claim.finding)}.</p>{story}{figures}{tables}'
        f'<p class="meta">Section {claim.section} of the theory, as numbered in the README; '
        f"checked in {claim.seconds:.1f} s.</p></section>"
    )


def _paragraph(text: str) -> str:
    """Return HTML of a paragraph whose lines after `$$` are displayed formulas."""
    first, *formulas = text.split("\n$$ ")
    shown = (formula_svg(formula.replace(r"\frac", r"\dfrac")) for formula in formulas)
    return f"<p>{_text(first)}</p>" + "".join(f'<div class="display">{svg}</div>' for svg in shown)


def _text(text: str) -> str:
    """Escape text, set the formulas between dollar signs, and the words between double asterisks in bold.

    A sign behind a backslash stands for itself (see `literal`).
    """
    parts = re.split(r"\\([\\$*])|\$(.+?)\$", text)
    words = ""
    for sign, formula, after in zip([None, *parts[1::3]], [None, *parts[2::3]], parts[::3], strict=True):
        words += f"&#{ord(sign)};" if sign else formula_svg(formula) if formula else ""
        words += html.escape(after)
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", words)


def _table(table: DataTable) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in table.rows[:SHOWN_ROWS]
    )
    note = f" ({len(table.rows)} rows, of which {SHOWN_ROWS} shown)" if len(table.rows) > SHOWN_ROWS else ""
    caption = f'{_text(table.caption)}{note} <a href="data/{table.name}.csv">CSV</a>'
    content = f'<div class="scroll"><table><caption>{caption}</caption><tr>{head}</tr>{body}</table></div>'
    return f"<details><summary>{_text(table.caption)}</summary>{content}</details>" if note else content


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return _verdict(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    return html.escape(text if len(text) <= 40 else text[:37] + "...")


def _embedded(folder: Path, name: str) -> str:
    data = base64.b64encode((folder / "figures" / f"{name}.svg").read_bytes()).decode()
    return f"data:image/svg+xml;base64,{data}"
