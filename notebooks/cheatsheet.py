"""Make docs/cheatsheet.pdf: the formulas on two pages, each beside its name in code.

python notebooks/cheatsheet.py
"""

from pathlib import Path
from typing import Any

from formulas import SECTIONS, verify
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from relaymodel.plotting import style

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cheatsheet.pdf"

IMPORTS = "import relaymodel as rm;  from relaymodel import bounds, control, derivation, networks, simulation"
ACCENT, SOFT = "#0072B2", "0.4"
WIDTH, HEIGHT = 210.0, 297.0  # millimetres
MARGIN, GAP = 13.0, 8.0
COLUMN = (WIDTH - 2 * MARGIN - GAP) / 2


class Page:
    """An A4 page of two columns, filled from the top; positions in millimetres."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=(WIDTH / 25.4, HEIGHT / 25.4), layout="none")
        self.renderer = FigureCanvasAgg(self.figure).get_renderer()
        self.column, self.y, self.room = 0, MARGIN, WIDTH - 2 * MARGIN
        self.write("relaymodel: the formulas and their names in code", 13, color=ACCENT, weight="bold", after=0.6)
        self.write(IMPORTS, 7, family="monospace", color=SOFT, after=2.5)
        self.top, self.room = self.y, COLUMN

    @property
    def x(self) -> float:
        """Left edge of the column."""
        return MARGIN + self.column * (COLUMN + GAP)

    def write(self, text: str, size: float, indent: float = 0, after: float = 0.8, **font: Any) -> None:
        """Write one line and move down by its height; `ValueError` if it is too wide or too low."""
        label = self.figure.text((self.x + indent) / WIDTH, 1 - self.y / HEIGHT, text, size=size, va="top", **font)
        box = label.get_window_extent(self.renderer)
        width, height = (25.4 / self.figure.dpi * side for side in (box.width, box.height))
        if width > self.room - indent:
            raise ValueError(f"a line must fit into its column, got {width - self.room + indent:.0f} mm more: {text}")
        self.y += height + after
        if self.y > HEIGHT - MARGIN / 2:
            raise ValueError(f"the page must hold all entries, got {self.y:.0f} mm at {text}")

    def rule(self) -> None:
        """Draw a thin line across the column."""
        y = 1 - self.y / HEIGHT
        ends = [self.x / WIDTH, (self.x + COLUMN) / WIDTH]
        self.figure.add_artist(Line2D(ends, [y, y], color=ACCENT, linewidth=0.8))
        self.y += 1.6


LAYOUT = [
    ["1  The model", "2  The exact solution  (N = P + t)"],
    ["3  The local exponent", "4  The bound is tight  (g = 0, λ, ρ ≥ 0)", "5  Random directions"],
    ["6  Continuum  (r = s/n, τ = log 1/r)", "7  What stops the decay"],
    ["8, 9  Networks", "10  Relative position", "Command line and figures"],
]
"""The sections of each column; their numbers are those of docs/theory.md."""


def draw(path: Path = TARGET) -> Path:
    """Draw the two pages into a PDF file, the same bytes every time."""
    with style():
        pages = [Page(), Page()]
        for index, names in enumerate(LAYOUT):
            page = pages[index // 2]
            page.column, page.y = index % 2, page.top
            for name in names:
                _section(page, name)
        with PdfPages(path, metadata={"CreationDate": None, "Title": "relaymodel cheat sheet"}) as pdf:
            for page in pages:
                pdf.savefig(page.figure)
    return path


def _section(page: Page, name: str) -> None:
    page.write(name, 11.5, color=ACCENT, weight="bold", after=0.9)
    page.rule()
    for entry in SECTIONS[name]:
        page.write(entry.title, 9.2, weight="bold", after=1.0)
        for formula in entry.formulas:
            page.write(f"${formula}$", 10.5, indent=3, math_fontfamily="stix", after=1.4)
        for line in entry.code:
            page.write(line, 7.4, indent=3, family="monospace", color=ACCENT, after=0.7)
        if entry.note:
            page.write(entry.note, 7.2, indent=3, color=SOFT, style="italic", after=0.7)
        page.y += 2.4
    page.y += 1.6


def main() -> None:
    """Check the formulas and draw the sheet."""
    verify()
    print(f"wrote {draw().name}")


if __name__ == "__main__":
    main()
