"""Causal models of the transformers library, as networks to be measured.

Needs torch and transformers: `pip install ".[networks]"` in the checkout.  They are imported when a model is loaded.
"""

from relaymodel.networks.huggingface.adapter import HuggingFaceNetwork
from relaymodel.networks.huggingface.convert import as_transformer
from relaymodel.networks.huggingface.load import load

__all__ = ["HuggingFaceNetwork", "as_transformer", "load"]
