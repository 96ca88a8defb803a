"""The certificate in LaTeX and HTML, with every number that a reader needs to check it by hand."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel import display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaymodel.certificate.result import Certificate

TIMES = 6  # rows of t
SHOWN = ("hypotheses", "section 8", "prompts", "smallest, prompts")
CONSTANTS = ("l", "κ", "κ2", "ω", "V", "q", "k", "μ", "ρ", "λ")


def power(log10: float, digits: int = 4) -> str:
    """Return a number given by its decimal logarithm, of any size.

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


def number(value: Any) -> str:
    """Return a float, or an integer of any size, with five digits."""
    return power(math.log10(value), 5) if value > 0 else "0"


def hypotheses(certificate: Certificate) -> list[tuple[str, str, str]]:
    """Return rows (name, verdict, finding)."""
    return [(h.name, "holds" if h.holds else "fails", h.finding) for h in certificate.hypotheses]


def constants(certificate: Certificate) -> list[tuple[str, ...]]:
    """Return the rows of the constants of THEORY section 8, in the order of `CONSTANTS`."""
    rows = []
    layers = certificate.step("section 8").layers
    for l, (c, layer) in enumerate(zip(certificate.constants["section 8"], layers, strict=True), start=1):
        values = (c.kappa, c.kappa_2, c.omega, c.value, c.query_part, c.key_part, c.mu, layer.residual, layer.relay)
        rows.append((str(l), *map(number, values)))
    return rows


def relays(certificate: Certificate) -> list[tuple[str, ...]]:
    """Return rows (block, and the residual and relay strength of each step shown)."""
    rows = []
    for l in range(certificate.depth):
        layers = [certificate.step(name).layers[l] for name in SHOWN]
        rows.append((str(l + 1), *(number(x) for layer in layers for x in (layer.residual, layer.relay))))
    return rows


def values(certificate: Certificate) -> list[tuple[str, ...]]:
    """Return rows (t, measured, the bounds shown), at tokens equally spaced in log t."""
    last = certificate.t.size
    chosen = np.unique(np.geomspace(1, last, min(TIMES, last)).round().astype(int)) - 1
    bounds = [certificate.log10_bound(name) for name in SHOWN]
    measured = certificate.distance()
    return [
        (str(certificate.t[i]), f"{measured[i]:.4g}", *(power(float(bound[i])) for bound in bounds)) for i in chosen
    ]


def ladder(certificate: Certificate) -> list[tuple[str, ...]]:
    """Return rows (step, holds for, made of, orders of magnitude above the truth, orders gained)."""
    return [
        (step.name, step.scope, step.knows, f"{above:.2f}", f"{gain:+.2f}" if i else "")
        for i, (step, (_, above, gain)) in enumerate(zip(certificate.steps, certificate.ladder, strict=True))
    ]


def verdict(certificate: Certificate) -> str:
    """Return what was verified, in a sentence."""
    check = certificate.verification
    if check.passed:
        found = f"all {check.inequalities} inequalities hold"
    else:
        found = f"{check.failed} of {check.inequalities} inequalities FAIL: {'; '.join(check.failures)}"
    theorem = "the hypotheses hold" if certificate.applies else "a hypothesis FAILS: the bound is for these runs alone"
    return f"{theorem}; {found}."


HEADS = {
    "hypotheses": ("hypothesis", "verdict", "found"),
    "ladder": ("step", "holds for", "made of", "log10 (bound / measured)", "gained"),
    "relays": ("block", *(f"{symbol} ({name})" for name in SHOWN for symbol in ("ρ", "λ"))),
    "values": ("t", "measured", *SHOWN),
}
CAPTIONS = {
    "hypotheses": "The hypotheses of the theorem",
    "ladder": "How far each bound is above the truth: mean over the continuation, last layer",
    "constants": "The constants of each block",
    "relays": "The relay layers of some steps",
    "values": "The bounds at the last layer",
}


def html(certificate: Certificate) -> str:
    """Return the certificate as an HTML fragment."""
    formulas = (
        "V = Σ<sub>h</sub> |W<sub>V</sub>W<sub>O</sub>| κ, q = Σ<sub>h</sub> c<sub>q</sub>R<sub>V</sub>, "
        "k = Σ<sub>h</sub> c<sub>k</sub>R<sub>V</sub>; ρ = (1 + μ)(1 + 6q), λ = (1 + μ) ω (V + 3k), both times "
        "1 + 10<sup>−6</sup> for the rounding of the states."
    )
    recursion = (
        f"From {certificate.unit:.5g} at the first P = {certificate.prompt} positions and 0 behind them, "
        "x′<sub>n</sub> = ρ x<sub>n</sub> + λ (x<sub>1</sub> + … + x<sub>n</sub>)/n, block by block; n = P + t. Steps "
        "that know single positions start from the differences of the embeddings themselves; those with the prompts "
        "given take the first P values of every layer from the measurement."
    )
    return "".join(
        (
            f"<p><b>Certificate.</b> {escape(verdict(certificate))}</p>",
            display.table(CAPTIONS["hypotheses"], hypotheses(certificate), HEADS["hypotheses"]),
            display.table(CAPTIONS["ladder"], ladder(certificate), HEADS["ladder"]),
            f"<p>{formulas}</p>",
            display.table(CAPTIONS["constants"] + " (step section 8)", constants(certificate), CONSTANTS),
            f"<p>{recursion}</p>",
            display.table(CAPTIONS["relays"], relays(certificate), HEADS["relays"]),
            display.table(CAPTIONS["values"], values(certificate), HEADS["values"]),
            f"<p><b>Certified.</b> {escape(certificate.certified)}</p>",
            f"<p><b>Measured.</b> {escape(certificate.measured_only)}</p>",
            display.facts(certificate.provenance),
        )
    )


def page(certificate: Certificate) -> str:
    """Return the certificate as a whole HTML page."""
    style = (
        "body{font:16px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}table{border-collapse:collapse;"
        "margin:1em 0}th,td{padding:.2em .6em;border-bottom:1px solid #ccc;text-align:left}caption{text-align:left;"
        "font-weight:bold}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>relaymodel: certificate</title>'
        f"<style>{style}</style></head><body>{html(certificate)}</body></html>\n"
    )


def latex(certificate: Certificate) -> str:
    """Return the certificate as a LaTeX fragment, which needs amsmath."""
    c, layer = certificate.constants["section 8"][0], certificate.step("section 8").layers[0]
    mu, omega, V, q, k = (_tex(number(x)) for x in (c.mu, c.omega, c.value, c.query_part, c.key_part))
    facts = "; ".join(f"{key}: {value}" for key, value in certificate.provenance.items())
    parts = [
        rf"\paragraph{{Certificate.}} {_tex(verdict(certificate))} {_tex(facts)}.",
        _tabular(r"llp{0.6\linewidth}", HEADS["hypotheses"], hypotheses(certificate), CAPTIONS["hypotheses"]),
        r"For every block, with $V=\sum_h |W_V^hW_O^h|\,\kappa$, $c_q=|W_Q|\,\kappa K/\sqrt{d_h}$, "
        r"$c_k=|W_K|\,\kappa Q/\sqrt{d_h}$, $q=\sum_h c_qR_V$ and $k=\sum_h c_kR_V$,",
        r"\[ \delta'_n \le \rho\,\delta_n+\frac{\lambda}{n}\sum_{s\le n}\delta_s,\qquad"
        r" \rho=(1+\mu)(1+6q),\qquad \lambda=(1+\mu)\,\omega\,(V+3k), \]",
        r"both enlarged by $10^{-6}$ for the rounding of the states. In the first block",
        "\\begin{align*}\n"  # one paragraph: align has no blank lines
        rf"\rho_1 &= (1+{mu})(1+6\cdot {q})(1+10^{{-6}}) \approx {_tex(number(layer.residual))},\\"
        rf"\lambda_1 &= (1+{mu})\cdot {omega}\,({V}+3\cdot {k})(1+10^{{-6}}) \approx {_tex(number(layer.relay))}."
        "\n\\end{align*}",
        _tabular("r" * len(CONSTANTS), CONSTANTS, constants(certificate), CAPTIONS["constants"]),
        rf"Hence $\delta_t \le {_tex(f'{certificate.unit:.5g}')}\,D(t;\lambda,\rho)$ with $P={certificate.prompt}$, "
        rf"$L={certificate.depth}$, which is $O(P(\log t)^{{L-1}}/t)$.",
        _tabular("r" * len(HEADS["relays"]), HEADS["relays"], relays(certificate), CAPTIONS["relays"]),
        _tabular("r" * len(HEADS["values"]), HEADS["values"], values(certificate), CAPTIONS["values"]),
        _tabular("lllrr", HEADS["ladder"], ladder(certificate), CAPTIONS["ladder"]),
        rf"\paragraph{{Certified.}} {_tex(certificate.certified)}",
        rf"\paragraph{{Measured.}} {_tex(certificate.measured_only)}",
    ]
    return "\n\n".join(parts) + "\n"


def _tabular(columns: str, head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    lines = [" & ".join(map(_cell, row)) + r" \\" for row in (head, *rows)]
    lines.insert(1, r"\hline")
    return "\n".join(
        (
            rf"\paragraph{{{_tex(caption)}.}}\mbox{{}}\\",  # the table on a line of its own
            rf"{{\footnotesize\begin{{tabular}}{{{columns}}}",
            *lines,
            r"\end{tabular}}",
        )
    )


def _cell(text: str) -> str:
    shown = _tex(text)
    return f"${shown}$" if r"\times" in shown else shown


def _tex(text: str) -> str:
    r"""Return text for LaTeX; a number with an exponent becomes a formula, to be put between dollars.

    >>> _tex("1.5e+07"), _tex("50 %, ω")
    ('1.5\\times 10^{7}', '50 \\%, $\\omega$')
    """
    mantissa, e, exponent = text.partition("e")
    if e and exponent.lstrip("+-").isdigit() and mantissa.replace(".", "").isdigit():
        return rf"{mantissa}\times 10^{{{int(exponent)}}}"
    return display.latex(text)
