"""The course: every notebook is run, and what it shows is compared with what is stored.

Running needs the extra `notebooks`; without it those tests are skipped, and the others still read what is stored.
"""

import html
import importlib.util
import inspect
import json
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from relaymodel.explore import Setting, render

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"


@pytest.fixture(scope="module", autouse=True)
def on_path():
    """Let the course's own modules find each other, as they do in the folder of the notebooks."""
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


def load(name):
    spec = importlib.util.spec_from_file_location(f"course_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


build, answers = load("build"), load("answers")
NAMES = build.NAMES
missing = [name for name in ("nbclient", "nbformat", "ipykernel") if importlib.util.find_spec(name) is None]
needs_kernel = pytest.mark.skipif(bool(missing), reason=f"pip install relaymodel[notebooks]: {missing} not installed")


def code(name):
    return [cell for cell in build.stored(name)["cells"] if cell["cell_type"] == "code"]


def text(name):
    return "\n".join("".join(cell["source"]) for cell in build.stored(name)["cells"])


@needs_kernel
@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of the machinery that runs kernels are not ours
@pytest.mark.parametrize("name", NAMES)
def test_a_fresh_run_shows_what_is_stored(name):
    """Every assertion holds, every answer given is right, and nothing differs in substance."""
    assert build.differences(build.stored(name), build.run(name)) == []


def test_there_are_nine_notebooks_in_order():
    assert [name[0] for name in NAMES] == list("123456789")
    assert [path.stem for path in sorted(FOLDER.glob("*.ipynb"))] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_the_source_with_outputs(name):
    source, stored = build.read(name), build.stored(name)
    for notebook in (source, stored):
        for cell in notebook["cells"]:
            cell.pop("outputs", None)
            cell.pop("execution_count", None)
    assert stored == source


@pytest.mark.parametrize("name", NAMES)
def test_stored_notebooks_hold_nothing_of_one_machine_or_moment(name):
    raw = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(raw) < 900_000
    assert re.search(r"/(home|root|tmp|work|Users|usr)/|[A-Z]:\\\\|object at 0x|[12]\d:[0-5]\d:[0-5]\d", raw) is None
    notebook = json.loads(raw)
    assert notebook["metadata"] == build.read(name)["metadata"]
    counts = [cell["execution_count"] for cell in code(name)]
    assert counts == list(range(1, len(counts) + 1))
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= {"tags"}
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr"
            assert "text/html" not in output.get("data", {}) or "srcdoc" not in str(output["data"]["text/html"])


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_teach_as_promised(name):
    """What one will be able to do comes first, exercises can be checked, references come last."""
    cells = build.stored(name)["cells"]
    assert "What you will be able to do" in "".join(cells[0]["source"])
    assert "## References" in "".join(cells[-1]["source"])
    assert "(../docs/theory.md)" in "".join(cells[-1]["source"])
    assert 4 <= len(build.solutions(build.read(name))) <= 8
    assert all(len(cell["source"]) <= 25 for cell in code(name)), "a code cell is longer than 25 lines"
    pictures = [output for cell in code(name) for output in cell["outputs"] if "image/png" in output.get("data", {})]
    assert len(pictures) >= 1
    assert sum("gallery" in cell["metadata"].get("tags", []) for cell in cells) == 1


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_package_that_the_prose_mentions_exist(name):
    import relaymodel
    from relaymodel import plotting

    for module, attribute in re.findall(r"`(rm|plotting)\.(\w+)", text(name)):
        assert hasattr({"rm": relaymodel, "plotting": plotting}[module], attribute), attribute


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#:]+)\)", text(name)):
        assert (FOLDER / target).exists(), target


# exercises


def test_every_exercise_is_asked_once_and_has_an_answer():
    asked = [number for name in NAMES for number in re.findall(r'check\("([\d.]+)"', text(name))]
    assert asked == list(answers.EXERCISES)
    for name in NAMES:
        assert all(number.startswith(name[0]) for number in re.findall(r'check\("([\d.]+)"', text(name)))


@pytest.mark.parametrize("number", list(answers.EXERCISES))
def test_right_answers_pass_and_wrong_ones_do_not(number):
    exercise = answers.EXERCISES[number]
    right = exercise.right()
    assert exercise.verdict(...).startswith("no answer yet")
    assert exercise.verdict(right) == "right!"
    for wrong, hint in exercise.hints.items():
        assert exercise.verdict(wrong) == f"not yet. {hint}"
    if isinstance(right, str):
        assert exercise.verdict(f" {right.upper()} ") == "right!"
        assert exercise.verdict("nonsense") == "not yet."
        assert "a word in quotes" in exercise.verdict(1.5)
    else:
        assert exercise.verdict(right * 1.05 + 0.01).startswith("not yet")
        assert "a number or an expression" in exercise.verdict("1.5")
        assert "a number or an expression" in exercise.verdict(True)


def test_whole_and_fractional_answers_are_taken_in_any_form():
    assert answers.EXERCISES["1.1"].verdict(np.float64(6336)) == "right!"
    assert answers.EXERCISES["1.5"].verdict(1.75) == "right!"
    assert answers.EXERCISES["1.5"].verdict(Fraction(7, 4)) == "right!"
    assert answers.EXERCISES["1.5"].verdict([1]).startswith("not yet")


# the page with sliders


def test_the_page_stands_beside_the_figure_that_is_stored(monkeypatch):
    pytest.importorskip("IPython", reason="pip install relaymodel[notebooks]: IPython is not installed")
    module, shown = load("course"), []
    monkeypatch.setattr(module, "display", lambda bundle, raw: shown.append(bundle) if raw else None)
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, 1])
    module.play(figure, Setting(depth=3))
    (bundle,) = shown
    assert bundle["image/png"].startswith(b"\x89PNG")
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)" [^>]*></iframe>', bundle["text/html"])
    assert html.unescape(frame[1]) == render(setting=Setting(depth=3))


# the comparison


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("alpha = 0.531", "alpha = 0.531", True),
        ("alpha = 0.531", "alpha = 0.532", True),
        ("alpha = 0.531", "alpha = 0.541", False),
        ("alpha = -0.531", "alpha = 0.531", False),
        ("1.23e-05", "1.24e-05", True),
        ("1.23e-05", "1.23e-06", False),
        ("255 points", "255 points", True),
        ("255 points", "254 points", False),
        ("right!", "not yet.", False),
        ("P*log(t)**2/t", "P*log(t)**3/t", False),
        ("True", "False", False),
        ("0.1 0.2", "0.1", False),
    ],
)
def test_texts_are_compared_in_substance(a, b, same):
    assert build.same_text(a, b) is same


@pytest.fixture(scope="module")
def notebook():
    return build.stored(NAMES[0])


def changed(notebook, place):
    copy = json.loads(json.dumps(notebook))
    place(copy["cells"])
    return build.differences(notebook, copy)


def cell_with(cells, kind):
    return next(c for c in cells for o in c.get("outputs", []) if kind in o or kind in o.get("data", {}))


def test_a_difference_in_any_part_is_seen(notebook):
    assert changed(notebook, lambda cells: None) == []
    assert "not those of the source" in changed(notebook, lambda cells: cells.pop())[0]
    assert "outputs" in changed(notebook, lambda cells: cell_with(cells, "text")["outputs"].pop())[0]
    wrong = changed(notebook, lambda cells: cell_with(cells, "text")["outputs"][0].update(text="something else"))
    assert "something else" in wrong[0]


@pytest.mark.slow
def test_another_picture_is_seen(notebook):
    import base64
    import io

    from relaymodel import RelayModel, plotting

    def png(depths, points=200):
        models = {f"$L = {L}$": RelayModel.uniform(prompt=64, depth=L, relay=0.5) for L in depths}
        figure = plotting.plot_influence(models, plotting.grid(1, 1e6, points)).figure
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100)
        return base64.b64encode(buffer.getvalue()).decode()

    one = png((1, 2, 4, 8))
    assert build.same_picture(one, png((1, 2, 4, 8), points=150))  # the same to the eye
    assert not build.same_picture(one, png((1, 2, 4, 12)))
    assert not build.same_picture(one, png((1, 2, 4)))
    blank = Figure(figsize=(6.8, 4.8))
    buffer = io.BytesIO()
    blank.savefig(buffer, format="png", dpi=100)
    assert not build.same_picture(one, base64.b64encode(buffer.getvalue()).decode())


def test_answers_that_are_wrong_stop_the_build(monkeypatch):
    """The builder runs each answer behind a fold and demands that it is right."""
    assert 'fullmatch(r"Exercise [\\d.]+: right' in inspect.getsource(build.run)
    found = build.solutions(build.read(NAMES[0]))
    assert list(found) == ["1.1", "1.2", "1.3", "1.4", "1.5"]
    assert found["1.1"][1] == 'answer = 6400 - 64\ncheck("1.1", answer)'


# gallery and cheat sheet


def test_the_gallery_shows_every_notebook_in_small_pictures():
    cards = (ROOT / "docs" / "gallery" / "cards.txt").read_text(encoding="utf-8")
    assert re.findall(r":link: course/(\w+)\n", cards) == NAMES
    for name in NAMES:
        assert build.title(build.stored(name)) in cards
        picture = ROOT / "docs" / "gallery" / f"{name}.png"
        width = int.from_bytes(picture.read_bytes()[16:20], "big")
        assert 200 < width < 600
        assert picture.stat().st_size < 80_000


@pytest.mark.slow
def test_the_cheat_sheet_has_two_pages_and_its_formulas_hold(tmp_path):
    sheet = load("cheatsheet")
    sheet.verify()
    drawn = sheet.draw(tmp_path / "cheatsheet.pdf").read_bytes()
    stored = (ROOT / "docs" / "cheatsheet.pdf").read_bytes()
    for pdf in (drawn, stored):
        assert len(re.findall(rb"/Type /Page\b", pdf)) == 2
        assert b"CreationDate" not in pdf
    assert abs(len(drawn) - len(stored)) < 0.05 * len(stored)
