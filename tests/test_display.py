"""How results are shown."""

import pytest

from relaymodel import display


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
