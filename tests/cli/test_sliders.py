"""The command explore."""

import json
import re
from pathlib import Path


def curves_in(page):
    text = Path(page).read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    return {curve["name"]: curve["t"] for curve in data["curves"]}


def test_a_page_without_curves(run):
    code, out, err = run("explore")
    assert (code, out, err) == (0, "", "wrote page.html\n")
    assert curves_in("page.html") == {}


def test_curves_are_named_by_file_and_layer(run):
    run("--version")  # enters the folder
    Path("one.csv").write_text("t,distance\n1,2\n2,1\n")
    Path("layers.csv").write_text("t,layer,distance\n1,3,2\n2,3,1\n1,7,2\n4,7,1\n")
    code, out, err = run("explore one.csv layers.csv --out curves.html")
    assert (code, out, err) == (0, "", "wrote curves.html\n")
    assert curves_in("curves.html") == {"one": [1, 2], "layers, layer 3": [1, 2], "layers, layer 7": [1, 4]}


def test_the_page_on_standard_output(run):
    run("explore")
    code, out, err = run("explore --out -")
    assert (code, err) == (0, "")
    assert out == Path("page.html").read_text(encoding="utf-8")
    assert not Path("-").exists()


def test_what_cannot_be_read_or_written_is_said_in_one_line(run):
    run("explore")
    Path("bad.csv").write_text("t,distance\n1,2\n2,many\n")
    Path("folder").mkdir()
    Path("folder/page.csv").write_text("t,distance\n1,2\n2,1\n")
    Path("page.csv").write_text("t,distance\n1,2\n2,1\n")
    for command, message in {
        "explore": "page.html exists already; choose another path, or --force",
        "explore none.csv --out a.html": "there is none at none.csv",
        "explore bad.csv --out a.html": "bad.csv, line 3: distance must be a number",
        "explore page.csv folder/page.csv --out a.html": "files of different names, got page.csv twice",
        "explore --out nowhere/a.html": "nowhere does not exist",
    }.items():
        code, out, err = run(command)
        assert (code, out, err.count("\n")) == (2, "", 1), command
        assert message in err
        assert not Path("a.html").exists()
    assert run("explore --force")[0] == 0
