"""The command derive."""

import sympy

from relaymodel import Layer, RelayModel
from tests.cli.cases import exact


def test_derive_prints_what_sympy_reads(result):
    found = result("derive --depth 2 --relay different --order 2")
    P, t = sympy.symbols("P t", positive=True)
    values = {"P": 2, "t": 2, "lambda_1": 1, "lambda_2": 3}
    expected = exact(RelayModel(2, [Layer(1), Layer(3)]), 2)
    for form in ("closed_form", "harmonic_form"):
        expression = sympy.sympify(found[form])
        assert sympy.simplify(expression.subs(values)) == sympy.Rational(expected)
    assert found["limit"]["log_power"] == 1
    series = sympy.sympify(found["exponent_series"]["expression"], {"t": t, "P": P})
    assert sympy.simplify(series - (1 - 1 / sympy.log(t))) == 0
    assert "steps" not in found


def test_derive_takes_decimals_exactly(result):
    assert result("derive --depth 2 --relay 0.1,1/3")["relay"] == ["1/10", "1/3"]


def test_derive_steps_and_latex(run, result):
    code, out, _ = run("derive --depth 2 --steps")
    assert code == 0
    assert "1. One layer" in out
    assert len(result("derive --depth 2 --steps --latex")["steps"]) > 5
    code, out, _ = run("derive --depth 2 --latex")
    assert out.startswith("$D(t)$ is the influence of a prompt of $P$ tokens behind 2 layers, on token $t$")
    assert r"relay strength $\lambda$, residual strength $1$, position exponent $0$" in out
    assert r"$\psi$ is the digamma function" in out
    assert "\n\\begin{align*}\n& D" in out
    assert "\\end{align*}" in out
    assert "\\psi" in out
    assert "\\paragraph{One layer.}" in run("derive --depth 2 --latex --steps")[1]


def test_derive_of_many_layers_stays_readable(run):
    code, out, _ = run("derive --depth 40")
    assert code == 0
    assert "h_39" in out
    assert max(map(len, out.splitlines())) < 3000


def test_derive_takes_symbols(result):
    found = result("derive --relay a,b")
    assert found["relay"] == ["a", "b"]
    assert sympy.sympify(found["limit"]["leading"]).has(sympy.Symbol("a"))
