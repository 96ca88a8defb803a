"""The heavy libraries: silence, and work without them."""

import io
import subprocess
import sys

import pytest

from relaymodel.networks.huggingface.libraries import quiet
from tests.networks.huggingface.models import NEEDED

transformers = pytest.importorskip("transformers")
tqdm = pytest.importorskip("tqdm.auto")


def test_silence_ends_with_its_block():
    logging, bar = transformers.utils.logging, tqdm.tqdm
    was = logging.get_verbosity()
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    start = bar.__init__

    def shown():
        stream = io.StringIO()
        list(bar(range(3), file=stream))
        return stream.getvalue()

    with pytest.raises(KeyError), quiet():
        assert logging.get_verbosity() == logging.ERROR
        assert not shown()
        raise KeyError
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), bar.__init__) == (logging.INFO, True, start)
    assert "3/3" in shown()
    logging.set_verbosity(was)


WITHOUT = """
import importlib, pkgutil, sys
from importlib.machinery import PathFinder

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        heavy = name.partition(".")[0] in {"torch", "transformers", "gguf", "accelerate", "tqdm"}
        return None if heavy else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]

import numpy as np, relaymodel
for module in pkgutil.walk_packages(relaymodel.__path__, "relaymodel."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from relaymodel.networks.huggingface import HuggingFaceNetwork, load
from relaymodel.networks.protocol import Pairs, RandomTokens, measure
from relaymodel.networks.transformer import Architecture, Transformer
shape = Architecture(depth=2, width=16, heads=2, vocabulary=256, positions="none")
network = Transformer.random(shape, np.random.default_rng(0))
measure(network, Pairs("to be or not", "that is the q", RandomTokens(20), prompt=12), bias=np.log1p)
for call in (lambda: load("gpt2"), lambda: HuggingFaceNetwork(None)):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_everything_else_works_without_the_libraries():
    run = subprocess.run([sys.executable, "-c", WITHOUT], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(NEEDED.format("torch")) for line in lines)
