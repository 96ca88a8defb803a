"""The documentation as a site: `sphinx-build -W --keep-going docs site`."""

import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

import relaymodel
from relaymodel import cli
from relaymodel.display import mathml
from relaymodel.explore import write_page

HERE = Path(__file__).parent

project, author, version = "relaymodel", "The relaymodel developers", relaymodel.__version__
copyright = f"2026, {author}"  # noqa: A001  (Sphinx's name)
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
default_role = "py:obj"
smartquotes = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks are shown with the outputs stored in them, which a test compares with a run

autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = "relaymodel"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {"navbar_align": "left", "show_prev_next": False, "footer_start": ["copyright"], "footer_end": []}
html_sidebars = {page: [] for page in ("index", "start", "theory", "cli", "search")}
html_show_sourcelink = False
html_math_renderer = "mathml"


def copy_notebooks(app: Sphinx) -> None:
    """Put the notebooks where Sphinx looks for pages."""
    shutil.rmtree(HERE / "course", ignore_errors=True)
    (HERE / "course").mkdir()
    for path in (HERE.parent / "notebooks").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        (HERE / "course" / path.name).write_text(text, encoding="utf-8")


def add_sliders(app: Sphinx, failure: Exception | None) -> None:
    """Put the page to play with beside the others."""
    if failure is None and app.builder.format == "html":
        write_page(Path(app.outdir) / "explore.html", overwrite=True)


def set_inline(writer, node: nodes.math) -> None:
    """Write a formula as MathML."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def set_displayed(writer, node: nodes.math_block) -> None:
    """Write a displayed formula as MathML."""
    writer.body.append(f'<div class="formula">{mathml(node.astext(), display=True)}</div>')
    raise nodes.SkipNode


def described_elsewhere(app: Sphinx, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """Leave what `import relaymodel` has to its own page."""
    here = app.env.current_document.autodoc_module
    return True if here != "relaymodel" and name in relaymodel.__all__ and what == "module" else None


def add_commands(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the reference of the command line below its introduction."""
    if page == "cli":
        whole = cli.app.generate_docs().replace(" *[default: ]*", "")
        source[0] += whole[whole.index("\n## relaymodel ") :]


def as_plain_text(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Keep norms |x| and names such as str_ in docstrings from being read as markup."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            lines[i] = re.sub(r"\|(?=\S)|(?<=\w)_(?!\w)", r"\\\g<0>", line)


def setup(app: Sphinx) -> None:
    """Register what is above."""
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", add_commands)
    app.connect("build-finished", add_sliders)
    app.connect("autodoc-skip-member", described_elsewhere)
    app.connect("autodoc-process-docstring", as_plain_text, priority=600)  # after napoleon's
    app.add_html_math_renderer("mathml", (set_inline, None), (set_displayed, None))
