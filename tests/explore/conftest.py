"""A real browser, where there is one."""

import shutil

import pytest


@pytest.fixture(scope="module")  # no longer: its event loop would be in the way of whatever else has one
def chromium():
    """Debian's Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs relaymodel[browser]")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs the program chromium (Debian's package of that name)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """Return a function that opens a page written with some curves, and fails the test on any error of its script."""
    from relaymodel.explore import write_page

    troubles, contexts = [], []

    def open_page(fragment="", *, width=1280, height=900, dark=False, **content):
        target = write_page(tmp_path / "page.html", overwrite=True, **content)
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.goto(target.as_uri() + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
