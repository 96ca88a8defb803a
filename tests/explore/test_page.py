"""The file itself; what it does in a browser is in test_browser."""

import json
import re

import numpy as np
import pytest

from relaymodel import Curve, PromptBias
from relaymodel.explore import Setting, write_page
from relaymodel.explore.page import render


def data(page):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_asks_nothing_of_anybody():
    page = render()
    assert re.findall(r"https?:|//[a-z]|@import|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(", page) == []
    assert set(re.findall(r"(?:src|href)=[\"']?([^\"'\s>]*)", page)) == {
        "data:,"
    }  # the icon that a browser would ask for
    assert "url(" not in page.replace("url(#in-upper)", "").replace("url(#in-lower)", "")
    assert "{{" not in page


def test_the_page_stays_small_however_many_curves():
    t = np.arange(1, 20_001)
    curves = {f"layer {k}": Curve(t, 1 / np.sqrt(t + k)) for k in range(100)}
    page = render(curves=curves)
    assert len(page.encode()) < 400_000
    drawn = data(page)["curves"]
    assert len(drawn) == 100
    assert [i for i, curve in enumerate(drawn) if curve["shown"]] == [0, 20, 40, 59, 79, 99]


def test_curves_are_embedded_as_they_are():
    curve = Curve([1, 2, 4.5], [1 / 3, 0.2, 0.1])
    (drawn,) = data(render(curves=curve))["curves"]
    assert drawn == {"name": "measured", "shown": True, "t": [1, 2, 4.5], "distance": [0.3333333, 0.2, 0.1]}


def test_long_curves_keep_their_ends_and_what_lies_evenly_between():
    t = np.arange(1, 200_001)
    (drawn,) = data(render(curves={"long": Curve(t, 1.0 / t)}))["curves"]
    kept = np.array(drawn["t"])
    assert kept[0] == 1
    assert kept[-1] == 100_000  # where the page ends
    assert 250 <= kept.size <= 400
    assert np.diff(np.log(kept[kept > 100])).max() < 0.04


def test_a_name_cannot_break_out_of_the_page():
    name = "</script><script>alert(1)</script> & <b>"
    page = render(curves={name: Curve([1, 2], [2, 1])})
    assert "alert(1)</script>" not in page
    assert data(page)["curves"][0]["name"] == name


def test_the_setting_is_where_the_sliders_stand():
    setting = Setting(prompt=7, bias=PromptBias(2))
    assert data(render(setting=setting))["setting"] == setting.to_dict()


def test_a_file_that_is_there_is_not_lost(tmp_path):
    target = tmp_path / "page.html"
    assert write_page(target) == target
    with pytest.raises(FileExistsError, match="exists already"):
        write_page(target)
    write_page(target, overwrite=True)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(TypeError, match="curves must be Curve objects"):
        render(curves={"a": [1, 2]})
    with pytest.raises(ValueError, match="curves must have points up to t = 100000"):
        render(curves=Curve([2e5, 3e5], [2, 1]))
    with pytest.raises(ValueError, match="curves must be at most 100, got 101"):
        render(curves={str(i): Curve([1, 2], [2, 1]) for i in range(101)})
    with pytest.raises(TypeError, match="setting must be a"):
        render(setting={"prompt": 3})
