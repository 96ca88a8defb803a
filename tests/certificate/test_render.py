"""What a certificate shows."""

import math
import re
from dataclasses import replace

from numpy.testing import assert_allclose

from relaymodel import Layer, RelayModel, certify, influence
from relaymodel.certificate.render import rounding
from relaymodel.networks.transformer import Transformer
from tests.certificate.cases import example
from tests.latex import compile_latex


def test_a_reader_can_check_the_page_by_hand(rng):
    certificate = certify(*example(rng, epsilon=0.1))
    page = certificate._repr_html_()
    table = re.search(r"<table><caption>The constants.*?</table>", page)[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", table)]
    assert len(rows) == 3
    layers = []
    for row in rows:
        _, _, _, omega, V, q, k, mu, rho, relay = map(float, row)
        assert_allclose(rho, (1 + mu) * (1 + 6 * q), rtol=5e-4)
        assert_allclose(relay, (1 + mu) * omega * (V + 3 * k), rtol=5e-4)
        layers.append(Layer(relay, rho))
    table = re.search(r"<table><caption>The bounds at the last layer.*?</table>", page)[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", table)]
    assert [int(row[0]) for row in rows] == [1, 2, 4, 9, 19, 40]
    unit = float(re.search(r"<p>From ([\d.e+-]+) at the first P = 5 positions", page)[1])
    for t, measured, noise, priori, section_8, posteriori, limit in (map(float, row) for row in rows):
        assert 0 < noise < measured
        assert_allclose(section_8, unit * influence(RelayModel(5, layers), t), rtol=2e-3)
        assert measured <= limit <= posteriori <= section_8 < priori
    text = certificate.latex()
    assert text.count("{") == text.count("}")
    for name in ("tabular", "align*"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") > 0
    assert text.count("$") % 2 == 0
    shown = re.search(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, flags=re.DOTALL)[1]
    assert "\n" not in shown
    plain = (
        re.sub(r"\\times 10\^\{(.*?)\}", r"e\1", shown.replace("\\\\ &", ""))
        .replace(" ", "")
        .replace(r"\quad{}\times", r"\cdot")
    )
    sides = re.findall(r"&=(.*?)\(1\+10\^\{-6\}\)\\approx([\d.e+-]*\d)", plain)
    assert len(sides) == 2
    for formula, value in sides:
        numbers = [float(x) for x in re.findall(r"[\d.]+(?:e[+-]?\d+)?", formula)]
        if formula.startswith("(1+") and len(numbers) == 5:  # (1 + mu)(1 + 6 q)
            assert_allclose(float(value), (1 + numbers[1]) * (1 + 6 * numbers[4]), rtol=5e-4)
        else:  # (1 + mu) omega (V + 3 k)
            assert_allclose(float(value), (1 + numbers[1]) * numbers[2] * (numbers[3] + 3 * numbers[5]), rtol=5e-4)
    assert not re.search(r"[^\x00-\x7f]", text)


def test_a_noise_floor_without_a_bound_names_the_last_layer_that_has_one(rng):
    certificate = certify(*example(rng))
    noise = certificate.noise.copy()
    noise[2:] = math.inf
    words = rounding(replace(certificate, noise=noise))
    assert f"at most {noise[1, certificate.prompt :].max():.1e} at layer 1, and without a proven bound" in words


def test_a_failed_certificate_says_so(rng):
    certificate = certify(*example(rng))
    forged = replace(certificate, high=certificate.high * 2, low=certificate.low * 2)
    assert not forged.holds
    assert "FAIL" in forged.latex()
    assert "do NOT all hold" in repr(forged)


NASTY = (r"\input{/etc/passwd}", "50 % of $x$", "a_b^c~d & #1", "line\none", "\x1b[31m", "}{", "ω ≤ κ2")


def test_texts_of_any_kind_are_escaped(rng):
    network, (a, b, after) = example(rng, depth=1, steps=4)
    facts = {f"{text} key": text for text in NASTY}
    certificate = certify(network, (a, b, after), provenance=facts)
    text = certificate.latex()
    assert "\\input{" not in text
    assert "\x1b" not in text
    plain = certify(network, (a, b, after)).latex()
    for sign in "{}":  # every brace that a text brings is escaped, and opens or closes nothing
        raw = re.findall(rf"(?<!\\)\{sign}", text.replace("{}", ""))
        assert len(raw) == len(re.findall(rf"(?<!\\)\{sign}", plain.replace("{}", "")))
    line = next(line for line in text.splitlines() if "passwd" in line)
    for sign in "%&#_":
        assert not re.search(rf"(?<!\\){sign}", re.sub(r"\$\\kappa_2\$", "", line)), sign
    page = certificate._repr_html_()
    assert "passwd" in page
    network = Transformer(network.architecture, network.weights, {"weights": "<script>alert(1)</script>"})
    assert "<script>" not in certify(network, (a, b, after))._repr_html_()


def test_latex_compiles_within_its_margins(rng, tmp_path):
    network, pairs = example(rng, depth=6, steps=8)
    text = certify(network, pairs, provenance={"text": "; ".join(NASTY[:6])}).latex()
    compile_latex(tmp_path, text)
