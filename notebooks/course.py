"""What every notebook of the course uses: `check` for exercises, `slider` for figures with a handle.

The right answers are computed by the package, in `answers.py`; look there after you have tried.
"""

import io
from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import display
from matplotlib.figure import Figure


def check(number: str, answer: Any) -> None:
    """Say whether the answer to an exercise is right; of a common mistake, say what may have gone wrong."""
    from answers import EXERCISES

    print(f"Exercise {number}: {EXERCISES[number].verdict(answer)}")


def slider(draw: Callable[[Any], Figure], name: str, values: Sequence[Any], start: Any) -> None:
    """Show the figure `draw(start)`, with a slider over `values` where ipywidgets and a kernel are there.

    The picture and the slider are sent together: a page without a kernel shows the picture.
    """
    still = _png(draw(start))
    bundle: dict[str, Any] = {"image/png": still, "text/plain": f"<figure at {name} = {start}>"}
    try:
        import ipywidgets
    except ImportError:
        print("Install ipywidgets for a slider; here is the figure at one value.")
    else:
        handle = ipywidgets.SelectionSlider(
            options=list(values), value=start, description=name, continuous_update=False
        )
        picture = ipywidgets.Image(value=still, format="png")
        handle.observe(lambda change: setattr(picture, "value", _png(draw(change["new"]))), names="value")
        bundle = ipywidgets.VBox([handle, picture])._repr_mimebundle_() | bundle
    display(bundle, raw=True)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()
