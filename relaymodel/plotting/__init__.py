"""Figures.  Every `plot_*` draws into `ax`, or into a new figure if there is none, and returns the axes.

Nothing is shown and no global setting is changed: figures are plain `matplotlib.figure.Figure` objects, which
`save` writes to files.  The names stand in `__init__.pyi`; matplotlib is loaded when one of them is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
