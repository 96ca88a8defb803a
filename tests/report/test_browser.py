"""The report in a real browser: nothing is cut or scrolls sideways on a phone, and the projector's switch works."""

import pytest

from relaymodel.report import reproduce
from relaymodel.report.claim import CLAIMS
from relaymodel.report.claims import control, heads
from tests.explore.conftest import chromium  # noqa: F401  (a fixture)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        shown = [claim for claim in CLAIMS if claim.check in (heads.density_is_the_constant, control.reminders)]
        patch.setattr("relaymodel.report.CLAIMS", shown)
        return (reproduce(tmp_path_factory.mktemp("out") / "report").folder / "index.html").as_uri()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_page(chromium, address, width):  # noqa: F811
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.goto(address)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cut = "[...document.querySelectorAll('td, th')].filter(cell => cell.scrollWidth > cell.clientWidth + 1).length"
    assert page.evaluate(cut) == 0
    page.close()


@pytest.mark.slow
def test_the_projector_shows_large_letters(chromium, address):  # noqa: F811
    page = chromium.new_page()
    page.goto(address)
    size = "parseFloat(getComputedStyle(document.querySelector('section p')).fontSize)"
    before = page.evaluate(size)
    page.click("button")
    assert page.evaluate(size) > 1.5 * before
    page.close()
