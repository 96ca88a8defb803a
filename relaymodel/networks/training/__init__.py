"""A small GPT, trained with or without a bias on the prompt's keys, and measured while it learns (THEORY section 7).

Needs torch and transformers: `pip install ".[networks]"` in the checkout.  They are imported when training begins; what
was trained elsewhere can be read and drawn without them.
"""

from relaymodel.networks.training.experiment import train
from relaymodel.networks.training.recipe import PRESETS, Recipe
from relaymodel.networks.training.result import ARMS, Progression, Training

__all__ = ["ARMS", "PRESETS", "Progression", "Recipe", "Training", "train"]
