"""relaymodel: how much a transformer remembers of its prompt, in one exactly solvable model.

The public names stand in `__init__.pyi`, each with its home, and are loaded on first use: importing the package costs
next to nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"

__bibtex__ = f"""@software{{relaymodel,
  title   = {{relaymodel: how much a transformer remembers of its prompt, in one exactly solvable model}},
  author  = {{{{The relaymodel developers}}}},
  version = {{{__version__}}},
  year    = {{2026}},
  license = {{MIT}},
}}"""
