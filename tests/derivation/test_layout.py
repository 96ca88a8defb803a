"""LaTeX in lines: the same formula, within the margins of a page."""

import re

import pytest
import sympy
from sympy.parsing.sympy_parser import implicit_multiplication, parse_expr, standard_transformations

from relaymodel import Layer, RelayModel
from relaymodel.derivation import derive, latex
from relaymodel.derivation.layout import LINE_WIDTH, _closed, align, broken, introduction, width
from tests.latex import compile_latex

DERIVED = {
    "equal": derive(4),
    "different": derive(3, relay="different", residual="different"),
    "positions": derive(3, position="different"),
    "half": derive(2, position=0.5),
}


def value(formula, at):
    """The value of a formula, read anew from its LaTeX."""
    text = re.sub(r"\\[Bb]ig[lr]|\\left|\\right|\{\}|\\qquad", "", formula)
    text = re.sub(r"([a-zA-Z])_\{(\d)\}", r"\1\2", text.replace("\\lambda", " lamb").replace("\\rho", " r"))
    text = re.sub(r"\\psi\^\{\((\d)\)\}\s*\(", r" polygamma(\1, ", text).replace(r"\psi(", " digamma(")
    text = text.replace(r"\Gamma(", " gamma(").replace(r"\times", "*").replace(r"\Big/", "/")
    text = text.replace("[", "(").replace("]", ")")
    text = without_fractions(text).replace("{", "(").replace("}", ")").replace("^", "**")
    names = {str(name): number for name, number in at.items()}
    names |= {name: getattr(sympy, name) for name in ("polygamma", "digamma", "gamma")}
    return float(parse_expr(text, names, (*standard_transformations, implicit_multiplication)))


def without_fractions(text):
    before, frac, rest = text.partition(r"\frac")
    if not frac:
        return text
    middle = _closed(rest, 0)
    end = _closed(rest, middle)
    over, under = (without_fractions(part[1:-1]) for part in (rest[:middle], rest[middle:end]))
    return f"{before} (({over})/({under})) {without_fractions(rest[end:])}"


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("form", ["closed_form", "local_exponent"])
def test_lines_say_what_the_formula_says(name, form):
    expression = getattr(DERIVED[name], form)
    names = sorted(expression.free_symbols, key=str)
    at = {symbol: sympy.Rational(k + 3, k + 2) for k, symbol in enumerate(names)}
    lines = broken(f"D = {latex(expression)}")
    assert len(lines) > 1
    assert max(map(width, lines)) <= LINE_WIDTH
    written = {
        str(symbol).replace("lambda", "lamb").replace("rho", "r").replace("_", ""): x for symbol, x in at.items()
    }
    assert value(" ".join(lines).removeprefix("D = "), written) == pytest.approx(float(expression.subs(at)), rel=1e-12)


@pytest.mark.parametrize("name", DERIVED)
def test_documents_compile_within_their_margins(name, tmp_path):
    derivation = DERIVED[name]
    formulas = [derivation.compact_form, *derivation.definitions, derivation.asymptotic, derivation.exponent_series(3)]
    formulas += [f"D = {latex(derivation.closed_form)}", rf"\alpha = {latex(derivation.local_exponent)}"]
    body = f"{introduction(derivation.parameters, derivation.depth, align(formulas))}\n"
    compile_latex(tmp_path, f"{body}{align(formulas)}\n\n{derivation.latex()}")


def test_heads_compile_too(tmp_path):
    heads = derive(RelayModel(8, [Layer(0.5, recency=0.5), Layer(1, sink=0.25)]))
    compile_latex(tmp_path, heads.latex())


def test_short_formulas_stay_as_they_are():
    assert broken("D = P + t") == ["D = P + t"]
    with pytest.raises(ValueError, match="balanced"):
        broken(r"\frac{" + "a + " * 40)


def test_an_opened_bracket_keeps_its_power():
    names = [f"a_{{{k}}}" for k in range(10)]
    lines = broken(rf"D = 2 \left({' + '.join(names * 3)}\right)^{{2}}")
    assert len(lines) > 1
    at = {f"a{k}": k + 1 for k in range(10)}
    assert value(" ".join(lines).removeprefix("D = "), at) == pytest.approx(2 * (3 * 55) ** 2)
