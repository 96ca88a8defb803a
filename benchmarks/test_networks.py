"""What measuring costs beside the network's own forward pass, in time and memory.

    python -m pytest benchmarks/test_networks.py -s

takes some minutes on one core.  Memory is the peak of a fresh process, imports and making the weights included.
"""

import os
import subprocess
import sys

import pytest

from benchmarks.timing import require, table

PROMPT, STEPS = 64, 960

PEAK = """
import resource
from pathlib import Path
def peak():  # ru_maxrss alone would begin with what the parent had when it started this process
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    mine = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    print((mine or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0] / 1024)
"""

SETUP = (
    PEAK
    + """
import numpy as np
rng = np.random.default_rng(0)
a, b, after = rng.integers(0, 1000, 64), rng.integers(0, 1000, 64), rng.integers(0, 1000, 960)
ids = np.stack([np.concatenate((prompt, after)) for prompt in (a, b)])
"""
)

TORCH = """
import torch, transformers
torch.set_num_threads(1)
torch.manual_seed(0)
config = transformers.GPT2Config(n_layer=12, n_embd=512, n_head=8, n_positions=1024)
model = transformers.AutoModelForCausalLM.from_config(config).eval()
def bare():
    with torch.no_grad():
        model.base_model(torch.tensor(ids), use_cache=False)
def predicting():
    with torch.no_grad():
        model(torch.tensor(ids), use_cache=False)
def measured(instruments=()):
    from relaymodel.networks.huggingface import HuggingFaceNetwork
    from relaymodel.networks.protocol import measure
    measure(HuggingFaceNetwork(model), (a, b, after), instruments=instruments)
"""

NUMPY = """
from relaymodel.networks.transformer import Architecture, Transformer
shape = Architecture(depth=12, width=512, heads=8, vocabulary=50257, context=1024)
network = Transformer.random(shape, rng)
def bare():
    for states in network.hidden_states(ids):
        pass
def predicting():
    *_, last = network.hidden_states(ids, final_norm=True)
    return last @ network.weights.embedding.T
def measured(instruments=()):
    from relaymodel.networks.protocol import measure
    measure(network, (a, b, after), instruments=instruments)
"""

LONG = (
    PEAK
    + """
import sys
import numpy as np
from relaymodel.networks.transformer import Architecture, Transformer
rng = np.random.default_rng(0)
shape = Architecture(depth=12, width=768, heads=12, vocabulary=1000, context=8192)
network = Transformer.random(shape, rng)
texts, blocks = map(int, sys.argv[1:])
for _, states in zip(range(blocks + 1), network.hidden_states(rng.integers(0, 1000, (texts, 8192)))):
    pass
assert np.all(np.isfinite(states))
peak()
"""
)


def peak(code, *arguments):
    """The peak memory, in MiB, of a fresh process on one core."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {"HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | one)
    return float(run.stdout.split()[-1])


def costs_little(kind, race, bare, more, what, allowed):
    """Race `more` against `bare`, (name, call, its code) each, and hold time and peak memory to `allowed`."""
    if kind == "torch":
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
    code = SETUP + {"torch": TORCH, "numpy": NUMPY}[kind]
    names = {}
    exec(code, names)
    ways = dict((bare, more))
    seconds = race({name: lambda call=call: eval(call, names) for name, call in ways.items()}, rounds=5)
    memory = {name: peak(f"{code}{call}; peak()") for name, call in ways.items()}
    table(
        f"{what}, GPT-2 of 12 layers of width 512, {kind}",
        ("", "seconds", "peak MiB"),
        [(name, seconds[name], memory[name]) for name in seconds],
    )
    time, space = (cost[more[0]] / cost[bare[0]] for cost in (seconds, memory))
    require(
        [
            (f"{kind}: time of {more[0]} / of the forward pass", time, "<=", allowed[0]),
            (f"{kind}: peak memory of {more[0]} / of the forward pass", space, "<=", allowed[1]),
        ]
    )


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_measuring_costs_little_beside_the_forward_pass(kind, race):
    what = f"two texts of {PROMPT + STEPS} tokens"
    costs_little(kind, race, ("forward pass", "bare()"), ("measuring", "measured()"), what, (1.2, 1.15))


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_all_instruments_cost_little_beside_a_pass_that_predicts(kind, race):
    """The bare pass ends with the logits of all tokens, as a model of transformers gives them."""
    what = f"two texts of {PROMPT + STEPS} tokens with logits"
    everything = "measured(('distance', 'next_token', 'attention'))"
    costs_little(kind, race, ("forward pass", "predicting()"), ("all instruments", everything), what, (1.35, 1.2))


def test_long_texts_fit_in_memory():
    # a quarter of the blocks will do for two: the others would only take the place of these
    memory = {texts: peak(LONG, texts, blocks) for texts, blocks in ((1, 12), (2, 3))}
    table(
        "NumPy transformer, 8192 tokens, 12 layers of width 768",
        ("", "peak MiB"),
        [(f"batch of {texts}", size) for texts, size in memory.items()],
    )
    require([(f"peak MiB, batch of {texts}", size, "<=", 2048) for texts, size in memory.items()])
