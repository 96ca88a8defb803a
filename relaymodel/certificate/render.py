"""The certificate in words, HTML and LaTeX, with every number that a reader needs to check it by hand."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from relaymodel import display
from relaymodel.certificate.evidence import Evidence
from relaymodel.certificate.verification import Verification
from relaymodel.checks import Number

SMALL_PRINT = 80  # letters of a line in footnotesize
TIME_ROWS = 6  # rows of t
SHOWN_RUNGS = ("hypotheses", "section_8", "prompts", "smallest_prompts")  # rungs whose layers and values are printed

CERTIFIED = (
    "For every rung the layer's inequality, and the bound that follows from it, at every position and layer, between "
    "the two runs' float64 states taken as exact numbers: distances are rounded outward, bounds against the claim. "
    "For the rungs 'weights' and 'hypotheses' also the theorem in exact arithmetic, for all the texts that they name: "
    "norms of the float64 weights are proven upper bounds, and every formula is rounded up."
)
MEASURED_TEXT = (
    "Floors, ω, Q, K, R_K and R_V are float64 values of the two runs, enlarged by a bound on their rounding to first "
    "order in it; constants of single positions are plain float64 values, which no claim rests on, for the inequality "
    "is checked on the distances themselves.  Nothing is said of runs in another number format."
)


class Tabular(NamedTuple):
    """A table in words; `columns` says how wide they are in LaTeX."""

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    columns: str = ""

    def html(self) -> str:
        """Return it in HTML."""
        return display.table(self.caption, self.rows, self.head)

    def latex(self) -> str:
        """Return it in LaTeX, on a line of its own."""
        table = display.typeset(self.head, self.rows, "latex", self.columns, SMALL_PRINT)
        title = rf"\paragraph{{{display.latex(self.caption)}.}}\mbox{{}}\\"
        return rf"{title}{{\footnotesize\setlength\tabcolsep{{3pt}}\noindent {table}\par}}"


def number(value: Number) -> str:
    """Return a float, or an integer of any size, with five digits."""
    return display.power(math.log10(value), 5) if value > 0 else "0"


def hypotheses(evidence: Evidence) -> Tabular:
    """Return the hypotheses with their verdicts."""
    rows = [(h.name, "holds" if h.holds else "fails", h.finding) for h in evidence.hypotheses]
    return Tabular("The hypotheses of the theorem", ("hypothesis", "verdict", "found"), rows, r"llp{0.6\linewidth}")


def ladder(evidence: Evidence) -> Tabular:
    """Return how far each rung is above the truth, and what it gains on the one before."""
    rows: list[tuple[str, ...]] = []
    heights = list(evidence.heights.values())
    for i, (name, rung) in enumerate(evidence.ladder.rungs.items()):
        gained = f"{heights[i] - heights[i - 1]:+.2f}" if i else ""
        rows.append((name, rung.scope, rung.knows, f"{heights[i]:.2f}", gained))
    return Tabular(
        "How far each bound is above the truth: mean over the continuation, last layer",
        ("rung", "holds for", "made of", "log10 (bound / measured)", "gained"),
        rows,
        r"lp{0.19\linewidth}p{0.31\linewidth}p{0.14\linewidth}r",
    )


def constants(evidence: Evidence) -> Tabular:
    """Return the constants of THEORY section 8 and the layers that they make."""
    rows, rung = [], evidence.ladder.section_8
    for l, (c, layer) in enumerate(zip(rung.constants, rung.layers, strict=True), start=1):
        values = (c.kappa, c.kappa_2, c.omega, c.value, c.query_part, c.key_part, c.mu, layer.residual, layer.relay)
        rows.append((str(l), *map(number, values)))
    head = ("l", "κ", "κ2", "ω", "V", "q", "k", "μ", "ρ", "λ")
    return Tabular("The constants of each block (rung section_8)", head, rows)


def relays(evidence: Evidence) -> Tabular:
    """Return the residual and relay strength of each block on the rungs shown."""
    rungs = [evidence.ladder.rungs[name] for name in SHOWN_RUNGS]
    rows = [
        (str(l + 1), *(number(x) for rung in rungs for x in (rung.layers[l].residual, rung.layers[l].relay)))
        for l in range(evidence.depth)
    ]
    head = ("block", *(f"{symbol} ({name})" for name in SHOWN_RUNGS for symbol in ("ρ", "λ")))
    return Tabular("The relay layers of some rungs", head, rows)


def values(evidence: Evidence) -> Tabular:
    """Return the measured distance and the bounds shown, at tokens equally spaced in log t."""
    last = evidence.t.size
    chosen = np.unique(np.geomspace(1, last, min(TIME_ROWS, last)).round().astype(int)) - 1
    measured, noise = evidence.distance(), evidence.noise[-1, evidence.prompt :]
    bounds = [evidence.log10_bound(name) for name in SHOWN_RUNGS]
    rows = [
        (
            str(evidence.t[i]),
            f"{measured[i]:.4g}",
            _noise(noise[i]),
            *(display.power(float(bound[i])) for bound in bounds),
        )
        for i in chosen
    ]
    head = ("t", "measured", "noise floor", *SHOWN_RUNGS)
    return Tabular("The bounds at the last layer", head, rows)


def verdict(evidence: Evidence, verification: Verification) -> str:
    """Return what was verified, in a sentence."""
    if verification.passed:
        found = f"all {verification.inequalities} inequalities hold"
    else:
        failures = "; ".join(verification.failures)
        found = f"{verification.failed} of {verification.inequalities} inequalities FAIL: {failures}"
    theorem = "the hypotheses hold" if evidence.applies else "a hypothesis FAILS: the bound is for these runs alone"
    return f"{theorem}; {found}."


def html(evidence: Evidence, verification: Verification) -> str:
    """Return the certificate as an HTML fragment."""
    formulas = (
        "V = Σ<sub>h</sub> |W<sub>V</sub>W<sub>O</sub>| κ, q = Σ<sub>h</sub> c<sub>q</sub>R<sub>V</sub>, "
        "k = Σ<sub>h</sub> c<sub>k</sub>R<sub>V</sub>; ρ = (1 + μ)(1 + 6q), λ = (1 + μ) ω (V + 3k), both times "
        "1 + 10<sup>−6</sup> for the rounding of the states."
    )
    recursion = (
        f"From {evidence.unit:.5g} at the first P = {evidence.prompt} positions and 0 behind them, "
        "x′<sub>n</sub> = ρ x<sub>n</sub> + λ (x<sub>1</sub> + … + x<sub>n</sub>)/n, block by block; n = P + t. Rungs "
        "that know single positions start from the differences of the embeddings themselves; those with the prompts "
        "given take the first P values of every layer from the measurement."
    )
    return "".join(
        (
            f"<p><b>Certificate.</b> {escape(verdict(evidence, verification))}</p>",
            hypotheses(evidence).html(),
            ladder(evidence).html(),
            f"<p>{formulas}</p>",
            constants(evidence).html(),
            f"<p>{recursion}</p>",
            relays(evidence).html(),
            values(evidence).html(),
            f"<p><b>Certified.</b> {escape(CERTIFIED)}</p>",
            f"<p><b>Measured.</b> {escape(MEASURED_TEXT)}</p>",
            f"<p><b>Rounding.</b> {escape(rounding(evidence))}</p>",
            display.facts(evidence.provenance),
        )
    )


def page(evidence: Evidence, verification: Verification) -> str:
    """Return the certificate as a whole HTML page."""
    style = (
        "body{font:16px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}table{border-collapse:collapse;"
        "margin:1em 0}th,td{padding:.2em .6em;border-bottom:1px solid #ccc;text-align:left}caption{text-align:left;"
        "font-weight:bold}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>relaymodel: certificate</title>'
        f"<style>{style}</style></head><body>{html(evidence, verification)}</body></html>\n"
    )


def latex(evidence: Evidence, verification: Verification) -> str:
    """Return the certificate as a LaTeX fragment, which needs amsmath."""
    rung = evidence.ladder.section_8
    c, layer = rung.constants[0], rung.layers[0]
    mu, omega, V, q, k = (_formula(number(x)) for x in (c.mu, c.omega, c.value, c.query_part, c.key_part))
    rho, relay, unit = map(_formula, (number(layer.residual), number(layer.relay), f"{evidence.unit:.5g}"))
    facts = "; ".join(f"{key}: {value}" for key, value in evidence.provenance.items())
    parts = [
        rf"\paragraph{{Certificate.}} {display.latex(verdict(evidence, verification))} {display.latex(facts)}.",
        hypotheses(evidence).latex(),
        r"For every block, with",
        r"\[ V=\sum_h |W_V^hW_O^h|\,\kappa,\quad c_q=|W_Q|\,\kappa K/\sqrt{d_h},\quad "
        r"c_k=|W_K|\,\kappa Q/\sqrt{d_h}, \] \[ q=\sum_h c_qR_V,\quad k=\sum_h c_kR_V, \]",
        r"\[ \delta'_n \le \rho\,\delta_n+\frac{\lambda}{n}\sum_{s\le n}\delta_s,\qquad"
        r" \rho=(1+\mu)(1+6q),\qquad \lambda=(1+\mu)\,\omega\,(V+3k), \]",
        r"both enlarged by $10^{-6}$ for the rounding of the states. In the first block",
        "\\begin{align*}\n"  # one paragraph: align has no blank lines
        rf"\rho_1 &= (1+{mu})(1+6\cdot {q})(1+10^{{-6}})\\ &\approx {rho},\\"
        rf"\lambda_1 &= (1+{mu})\cdot {omega}\\ &\quad{{}}\times({V}+3\cdot {k})(1+10^{{-6}})\\ &\approx {relay}."
        "\n\\end{align*}",
        constants(evidence).latex(),
        rf"Hence $\delta_t \le {unit}\,D(t;\lambda,\rho)$ with $P={evidence.prompt}$, "
        rf"$L={evidence.depth}$, which is $O(P(\log t)^{{L-1}}/t)$.",
        relays(evidence).latex(),
        values(evidence).latex(),
        ladder(evidence).latex(),
        rf"\paragraph{{Certified.}} {display.latex(CERTIFIED)}",
        rf"\paragraph{{Measured.}} {display.latex(MEASURED_TEXT)}",
        rf"\paragraph{{Rounding.}} {display.latex(rounding(evidence))}",
    ]
    return "\n\n".join(parts) + "\n"


def _noise(value: float) -> str:
    return f"{value:.1e}" if math.isfinite(value) else "∞"


def rounding(evidence: Evidence) -> str:
    """Return, in a sentence, how far the float64 runs may be from the network in exact arithmetic."""
    floor = evidence.noise[:, evidence.prompt :].max(axis=1)
    if math.isfinite(floor[-1]):
        found = f"at most {_noise(floor[-1])} at the last layer"
    else:
        proven = int(np.sum(np.isfinite(floor))) - 1
        found = f"at most {_noise(floor[proven])} at layer {proven}, and without a proven bound behind it"
    return (
        f"A distance of the float64 runs differs from that of the network in exact arithmetic by {found}, to first "
        "order in rounding: each state's error is bounded as a small difference of two runs is, by norms, and each "
        "operation adds its own by the standard model. A bound that uses the runs is one on the exact distance where "
        "this noise floor is added to it."
    )


def _formula(number: str) -> str:
    """Return a number for a formula."""
    return display.latex(number).strip("$")
