"""LaTeX is sound and renders."""

import re

import pytest
from matplotlib.mathtext import MathTextParser

import relaymodel.derivation as package
from relaymodel.derivation import derive
from tests.derivation.cases import STEP_CASES, assert_sound


def formulas(derivation):
    for step in derivation.steps:
        body = step.latex().split("\\begin{align*}\n")[1].split("\n\\end{align*}")[0]
        yield from (line.removeprefix("& ").removesuffix(" \\\\") for line in body.split("\n"))
        yield from re.findall(r"\$(.+?)\$", step.text)
    yield from re.findall(r"& (.+?)(?: \\\\)?\n", derivation._repr_latex_())
    yield derivation.asymptotic._repr_latex_().strip("$").removeprefix("\\displaystyle ")


@pytest.mark.parametrize("case", STEP_CASES)
def test_latex_is_sound(case):
    derivation, _ = STEP_CASES[case]
    found = [assert_sound(tex) for tex in formulas(derivation)]
    assert len(found) > 15
    for step in derivation.steps:
        assert step._repr_markdown_().count("$") % 2 == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", ["equal", "two poles"])
def test_latex_renders(case):
    parser = MathTextParser("agg")
    for tex in formulas(STEP_CASES[case][0]):
        plain = re.sub(r"\\[Bb]ig[lr]?", "", tex)  # sizes are LaTeX's alone
        parser.parse(f"${plain}$")


def test_latex_of_powers_and_names():
    assert r"{\left(\psi" not in derive(2).latex()
    text = package.notation.latex(derive(3, relay=1).harmonic_form)
    assert r"H_{P}^{\left(2\right)}" in text
    assert r"H_{P + t}" in text
    assert derive(2).latex().count("\\paragraph") == len(derive(2).steps)
