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


def test_derive_of_heads(run, result):
    """No closed form: the symbol, whose value at 2 is that of the layers' own definition, a contour, and the series."""
    found = result("derive --depth 2 --recency 0.5 --relay a --sink 0.25")
    assert [layer["heads"] for layer in found["layers"]] == [[{"relay": "a", "position": "0", "recency": "1/2"}]] * 2
    z, a = sympy.symbols("z a")
    symbol = sympy.sympify(found["symbol"], {"z": z, "a": a})
    assert symbol.subs({z: 2, a: 3}) == (1 + 3 * sympy.Rational(2, 3)) ** 2  # row 2 is (1/3, 2/3)
    assert sympy.expand(sympy.sympify(found["plateau"]) - (a + sympy.Rational(5, 4)) ** 2 + (a + 1) ** 2) == 0
    assert found["limit"] == {"exponent": "1", "log_power": 1, "leading": "P*a**2*log(t)/(4*t)"}
    code, out, _ = run("derive --depth 2 --recency equal --latex")
    assert code == 0
    assert "recency exponent $\\gamma$" in out
    assert "the symbol of the layers" in run("derive --recency equal")[1]
    assert "\\paragraph{The contour.}" in run("derive --recency equal --steps --latex")[1]


def test_derive_of_several_heads_takes_decimals_exactly(run, result):
    found = result("derive --heads 0.3:recency=0.7+0.2:position=0.5,1 --residual 1,0.1")
    assert [layer["residual"] for layer in found["layers"]] == ["1", "1/10"]
    assert found["layers"][0]["heads"][0] == {"relay": "3/10", "position": "0", "recency": "7/10"}
    for words, message in {
        "--heads 0.3 --relay 1": "--relay must not be given together with --heads",
        "--heads 0.3 --recency .5": "--recency must not be given together with --heads",
        "--heads 0.3 --residual a": "--residual must be numbers beside --heads, got a",
        "--heads 0.3,0.4 --depth 3": "--heads must have one value, or one for each of the 3 layers, got 2",
        "--recency 1": "--recency must be less than 1",
    }.items():
        code, out, err = run(f"derive {words}")
        assert (code, out) == (2, "")
        assert message in err
