"""What every notebook of the course uses: `check` for exercises, `play` for the page with sliders.

The right answers are computed by the package, in `answers.py`; look there after you have tried.
"""

import io
from html import escape
from typing import Any

from IPython.display import display
from matplotlib.figure import Figure

from relaymodel.explore import Setting, render


def check(number: str, answer: Any) -> None:
    """Say whether the answer to an exercise is right; of a common mistake, say what may have gone wrong."""
    from answers import EXERCISES

    print(f"Exercise {number}: {EXERCISES[number].verdict(answer)}")


def play(figure: Figure, setting: Setting) -> None:
    """Show the page of `relaymodel explore`, its sliders where a setting has them; `figure` where nothing can be moved.

    Both are sent together. The notebook is stored with the figure alone.
    """
    frame = f'<iframe srcdoc="{escape(render(setting=setting))}" width="100%" height="760" style="border: 0"></iframe>'
    display({"text/html": frame, "image/png": _png(figure), "text/plain": "<the page to play with>"}, raw=True)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()
