"""What a certificate shows."""

import re
from dataclasses import replace

from numpy.testing import assert_allclose

from relaymodel import Layer, RelayModel, certify, influence
from tests.certificate.cases import example


def test_a_reader_can_check_the_page_by_hand(rng):
    certificate = certify(*example(rng))
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
    unit = float(re.search(r"<p>From ([\d.e+-]+) at the first P = 5 positions", page)[1])
    for t, measured, priori, section_8, posteriori, limit in (map(float, row) for row in rows):
        assert_allclose(section_8, unit * influence(RelayModel(5, layers), t), rtol=2e-3)
        assert measured <= limit <= posteriori <= section_8 < priori
    text = certificate.latex()
    assert text.count("{") == text.count("}")
    for name in ("tabular", "align*"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") > 0
    assert text.count("$") % 2 == 0
    shown = re.search(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, flags=re.DOTALL)[1]
    assert "\n" not in shown
    plain = re.sub(r"\\times 10\^\{(.*?)\}", r"e\1", shown).replace(" ", "")
    sides = re.findall(r"&=(.*?)\(1\+10\^\{-6\}\)\\approx([\d.e+-]*\d)", plain)
    assert len(sides) == 2
    for formula, value in sides:
        numbers = [float(x) for x in re.findall(r"[\d.]+(?:e[+-]?\d+)?", formula)]
        if formula.startswith("(1+") and len(numbers) == 5:  # (1 + mu)(1 + 6 q)
            assert_allclose(float(value), (1 + numbers[1]) * (1 + 6 * numbers[4]), rtol=5e-4)
        else:  # (1 + mu) omega (V + 3 k)
            assert_allclose(float(value), (1 + numbers[1]) * numbers[2] * (numbers[3] + 3 * numbers[5]), rtol=5e-4)
    assert not re.search(r"[^\x00-\x7f]", text)


def test_a_failed_certificate_says_so(rng):
    certificate = certify(*example(rng))
    forged = replace(certificate, high=certificate.high * 2, low=certificate.low * 2)
    assert not forged.holds
    assert "FAIL" in forged.latex()
    assert "do NOT all hold" in repr(forged)
