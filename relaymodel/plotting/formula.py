"""Formulas as pictures, for pages that must show them without a network."""

import io
import re

from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image

from relaymodel.plotting.figure import style

SIZE = 10.0


def formula_svg(latex: str) -> str:
    r"""Return an inline SVG element of a formula in matplotlib's part of LaTeX, sized in em, on the text's baseline.

    >>> formula_svg(r"\frac{P}{P + t}")[:23]
    '<svg class="formula" st'
    >>> formula_svg(r"\nonsense{")
    Traceback (most recent call last):
    ValueError: latex must be a formula that matplotlib can set, got '\\nonsense{'
    """
    buffer = io.BytesIO()
    try:
        with style():
            depth = math_to_image(
                f"${latex}$", buffer, prop=FontProperties(size=SIZE, math_fontfamily="stix"), format="svg", dpi=72
            )
    except ValueError:
        raise ValueError(f"latex must be a formula that matplotlib can set, got {latex!r}") from None
    picture = buffer.getvalue().decode()
    match = re.search(r'<svg [^>]*?width="([\d.]+)pt"[^>]*?height="([\d.]+)pt"|<svg [^>]*?height="([\d.]+)pt"', picture)
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
    assert match is not None
    assert box is not None
    width, height = float(box[1]), float(box[2])
    body = picture[picture.index(">", picture.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    css = f"width:{width / SIZE:.2f}em;height:{height / SIZE:.2f}em;vertical-align:-{depth / SIZE:.2f}em"
    return (
        f'<svg class="formula" style="{css}" viewBox="0 0 {width} {height}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{body.strip()}'
    )
