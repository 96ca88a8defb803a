"""How results are shown."""

import pytest

from relaymodel import display
from relaymodel.display import typeset
from tests.latex import compile_latex


def test_everything_is_escaped_in_html():
    shown = display.table("<a>", [("<b>", "<c>")], ("<d>", "e")) + display.facts({"<f>": "<g>"})
    assert "<a>" not in shown.replace("&lt;a&gt;", "")
    for letter in "abcdfg":
        assert f"&lt;{letter}&gt;" in shown
    assert display.table("", [("name", 1)]).count("<th>") == 1


@pytest.mark.parametrize("text", [r"\input{x}", "a^b_c~d", "$x$ & 5 % #1", "κ2 ≤ κ"])
def test_text_is_no_command_in_latex(text):
    shown = display.latex(text)
    bare = shown
    for known in sorted(display.LATEX.values(), key=len, reverse=True):
        bare = bare.replace(known, "")
    assert not set(bare) & set("\\{}$&%#_^~")


def test_controls_do_not_reach_latex():
    assert display.latex("a\x1b[31mb\nc") == r"a\textbackslash{}x1b[31mb c"


def test_figures_without_an_error():
    assert display.figure(0.5, float("inf")) == "0.5 ± inf"
    assert display.figure(0.5, 0.0) == "0.5 ± 0"


def test_wide_and_long_tables_fit_a_page(tmp_path):
    """Columns go to tables of their own, with the first column again, and rows to the next page."""
    head = ["t", *(f"quantity {k}" for k in range(9))]
    rows = [[str(t), *(f"{-1.23456e-190 * k:.5e}" for k in range(1, 10))] for t in range(80)]
    found = typeset(head, rows, "latex")
    assert found.count(r"\begin{tabular}{r") == 3 * found.count("quantity 0 &") > 3
    assert all(line.startswith("t & quantity") for line in found.splitlines() if "quantity" in line)
    compile_latex(tmp_path, found)
