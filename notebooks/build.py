"""Make the notebooks, their gallery and the cheat sheet.

    python notebooks/build.py [NAME ...]

Each notebook is written in `source/NAME.py`, in cells that begin with `# %%`.  This program turns it into
`NAME.ipynb`, runs it, tries the answers to its exercises, and stores it with its outputs.  Without a name it does so
for all notebooks, and draws the gallery and the cheat sheet.  `tests/test_notebooks.py` compares the stored outputs
with a fresh run.
"""

import base64
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
NAMES = sorted(path.stem for path in (HERE / "source").glob("*.py"))
SECONDS = 120
"""A cell that takes longer is an error."""

Notebook = dict[str, Any]
Cell = dict[str, Any]


def read(name: str) -> Notebook:
    """Return a notebook without outputs, as its source has it."""
    text = (HERE / "source" / f"{name}.py").read_text(encoding="utf-8")
    first, *parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)
    if first.strip():
        raise ValueError(f"source/{name}.py must begin with a cell, # %% [markdown]")
    cells: list[Cell] = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        lines = body.strip("\n").split("\n")
        cell: Cell = {"id": f"{len(cells) + 1:02d}", "metadata": {}}
        if "gallery" in kind:
            cell["metadata"] = {"tags": ["gallery"]}
        if "[markdown]" in kind:
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
            cell |= {"cell_type": "markdown"}
        else:
            lines = [line.removeprefix("# ") if line.startswith("# %") else line for line in lines]
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        cell["source"] = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def stored(name: str) -> Notebook:
    """Return a notebook with its outputs, as it was stored."""
    notebook: Notebook = json.loads((HERE / f"{name}.ipynb").read_text(encoding="utf-8"))
    return notebook


def solutions(notebook: Notebook) -> dict[str, tuple[int, str]]:
    """Return {exercise: (index of its cell, code of the answer)}; the answer is the next code block in markdown."""
    found = {}
    for index, cell in enumerate(notebook["cells"]):
        number = re.search(r'check\("([\d.]+)"', "".join(cell["source"]))
        if cell["cell_type"] == "code" and number:
            text = "".join(notebook["cells"][index + 1]["source"])
            code = re.search(r"<details>.*?```python\n(.*?)```.*?</details>", text, flags=re.DOTALL)
            if code is None:
                raise ValueError(f"exercise {number[1]} must be followed by a cell with its answer in <details>")
            found[number[1]] = index, f'{code[1]}check("{number[1]}", answer)'
    return found


def run(name: str) -> Notebook:
    """Run a notebook from its source in a fresh kernel and return it with outputs; every answer must be right."""
    import nbformat
    from nbclient import NotebookClient

    notebook = read(name)
    answers = solutions(notebook)
    extra = dict(answers.values())
    cells: list[Cell] = []
    for index, cell in enumerate(notebook["cells"]):
        cells.append(cell)
        if index in extra:
            cells.append({**cell, "id": f"answer-{index}", "source": extra[index]})
    executed = nbformat.reads(json.dumps({**notebook, "cells": cells}), as_version=4)
    client = NotebookClient(
        executed,
        timeout=SECONDS,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(HERE)}},
        extra_arguments=["--HistoryManager.enabled=False"],
    )
    client.execute()
    for cell in executed.cells:
        said = "".join(output.get("text", "") for output in cell.get("outputs", []))
        if cell.id.startswith("answer-") and not re.fullmatch(r"Exercise [\d.]+: right\b.*\n", said):
            raise ValueError(f"the answer in {name} must be right, got {said!r} for\n{cell.source}")
    return clean({**notebook, "cells": [dict(cell) for cell in executed.cells if not cell.id.startswith("answer-")]})


def clean(notebook: Notebook) -> Notebook:
    """Return the notebook without what differs from run to run, and without pages with sliders."""
    count = 0
    for cell in notebook["cells"]:
        if isinstance(cell["source"], str):
            cell["source"] = cell["source"].splitlines(keepends=True)
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"] = count
        cell["metadata"].pop("execution", None)
        cell["outputs"] = _joined(cell["outputs"])
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = count
            data = output.get("data", {})
            if "<iframe srcdoc" in "".join(data.get("text/html", "")):  # what its figure stands for on a page
                del data["text/html"]
    plain: Notebook = json.loads(json.dumps(notebook))
    return plain


def _joined(outputs: list[Any]) -> list[Any]:
    """Return outputs with what was printed in one piece; in how many messages it arrived is chance."""
    joined: list[Any] = []
    for output in outputs:
        if joined and output["output_type"] == "stream" and joined[-1].get("name") == output["name"]:
            joined[-1]["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def write(name: str, notebook: Notebook) -> None:
    """Store a notebook."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    (HERE / f"{name}.ipynb").write_text(text, encoding="utf-8")


# comparison of a stored and a fresh run


NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def differences(old: Notebook, new: Notebook) -> list[str]:
    """Return in what two runs of a notebook differ in substance, a line each.

    Sources and words must be the same, decimal numbers to two units of the last digit printed, whole numbers exactly,
    pictures in size and, coarsely, in where there is ink.
    """
    if [cell["source"] for cell in old["cells"]] != [cell["source"] for cell in new["cells"]]:
        return ["the cells are not those of the source: run python notebooks/build.py"]
    found = []
    for before, after in zip(old["cells"], new["cells"], strict=True):
        a, b = before.get("outputs", []), after.get("outputs", [])
        kinds = [[(o["output_type"], sorted(o.get("data", {"text": ""}))) for o in outputs] for outputs in (a, b)]
        if kinds[0] != kinds[1]:
            found.append(f"cell {before['id']}: outputs {kinds[0]} stored, {kinds[1]} now")
            continue
        for x, y in zip(a, b, strict=True):
            data = [o.get("data", {"text": o.get("text", "")}) for o in (x, y)]
            for kind in data[0]:
                values = ["".join(d[kind]) if isinstance(d[kind], list) else d[kind] for d in data]
                same = same_picture if kind == "image/png" else same_text
                if not same(*values):
                    shown = "the pictures differ" if kind == "image/png" else f"{values[0]!r} stored, {values[1]!r} now"
                    found.append(f"cell {before['id']}: {shown}")
    return found


def same_text(a: str, b: str) -> bool:
    """Whether two texts are equal but for the last digit of decimal numbers.

    >>> same_text("alpha = 0.5310", "alpha = 0.5311"), same_text("alpha = 0.531", "alpha = 0.541")
    (True, False)
    """
    words = [NUMBER.sub("#", text) for text in (a, b)]
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=False)
    return words[0] == words[1] and all(_same_number(x, y) for x, y in pairs)


def _same_number(a: str, b: str) -> bool:
    if a == b:
        return True
    if not any(mark in a for mark in ".e") or not any(mark in b for mark in ".e"):
        return False
    mantissa, _, exponent = a.lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(a) - float(b)) <= 2.001 * unit


BLOCKS = 24
INK = 0.08
"""Part of the ink that may lie elsewhere."""


def same_picture(a: str, b: str) -> bool:
    """Whether two base64 PNG pictures have the same size and their ink in the same places, roughly."""
    import numpy as np
    from matplotlib.image import imread

    first, second = (1 - imread(io.BytesIO(base64.b64decode(x)))[..., :3].mean(axis=2) for x in (a, b))
    if any(abs(m - n) > 0.02 * m for m, n in zip(first.shape, second.shape, strict=True)):
        return False

    def blocks(ink: Any) -> Any:
        rows = [np.array_split(band, BLOCKS, axis=1) for band in np.array_split(ink, BLOCKS)]
        return np.array([[block.mean() for block in row] for row in rows])

    here, there = blocks(first), blocks(second)
    return bool(np.abs(here - there).sum() <= INK * here.sum())


# the gallery


SMALL = (400, 300)
"""Largest width and height of a picture in the gallery, twice what is shown."""


def title(notebook: Notebook) -> str:
    """Return the heading of a notebook."""
    return "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ")


def gallery() -> None:
    """Draw docs/gallery/NAME.png for each notebook, from the cell marked gallery, and write the cards of its page."""
    from PIL import Image  # matplotlib cannot do without it

    folder = DOCS / "gallery"
    folder.mkdir(exist_ok=True)
    cards = []
    for name in NAMES:
        notebook = stored(name)
        (cell,) = (cell for cell in notebook["cells"] if "gallery" in cell["metadata"].get("tags", []))
        picture = next(o["data"]["image/png"] for o in cell["outputs"] if "image/png" in o.get("data", {}))
        whole = Image.open(io.BytesIO(base64.b64decode("".join(picture)))).convert("RGB")
        whole.thumbnail(SMALL, Image.Resampling.LANCZOS)
        whole.quantize(160).save(folder / f"{name}.png", optimize=True)
        options = f":img-top: gallery/{name}.png\n:link: course/{name}\n:link-type: doc"
        cards.append(f":::{{grid-item-card}} {title(notebook)}\n{options}\n:::\n")
    text = f"::::{{grid}} 1 2 2 4\n:gutter: 2\n\n{''.join(cards)}::::\n"
    (folder / "cards.txt").write_text(text, encoding="utf-8")


def main(names: list[str]) -> None:
    """Build the notebooks named; without a name all of them, the gallery and the cheat sheet."""
    for name in names or NAMES:
        print(f"running {name}", flush=True)
        write(name, run(name))
    if not names:
        import cheatsheet

        gallery()
        cheatsheet.main()


if __name__ == "__main__":
    main(sys.argv[1:])
