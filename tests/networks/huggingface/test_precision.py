"""The precision of a model, and what rounding does to distances."""

import warnings

import numpy as np
import pytest

from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.huggingface.libraries import quiet
from relaymodel.networks.protocol import measure
from tests.networks.huggingface.models import GPT2, build, network, states

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.mark.parametrize(
    ("dtype", "products", "spacing"),
    [
        ("float64", "highest", 2.0**-52),
        ("float64", "medium", 2.0**-52),
        ("float32", "highest", 2.0**-23),
        ("float32", "high", 2.0**-10),
        ("float32", "medium", 2.0**-7),
        ("float16", "highest", 2.0**-10),
        ("bfloat16", "highest", 2.0**-7),
    ],
)
def test_precision_and_the_warning_below_float32(dtype, products, spacing, rng, recwarn):
    net = network("gpt2", dtype=getattr(torch, dtype))
    before = torch.get_float32_matmul_precision()
    a, b, after = rng.integers(0, 30, 4), rng.integers(30, 60, 4), rng.integers(0, 60, 20)
    try:
        torch.set_float32_matmul_precision(products)
        assert net.precision == spacing
        if spacing > 2.0**-23:
            with pytest.warns(UserWarning, match=f"spacing of {spacing:.1e} at 1.*use float32 or better"):
                measured = measure(net, (a, b, after))
        else:
            measured = measure(net, (a, b, after))
    finally:
        torch.set_float32_matmul_precision(before)
    assert measured.precision == spacing
    assert not recwarn.list


def test_one_coarse_matrix_sets_the_precision():
    model = build("gpt2", dtype=torch.float32)
    model.transformer.h[1].mlp.c_fc.weight.data = model.transformer.h[1].mlp.c_fc.weight.data.bfloat16()
    model.transformer.h[1].mlp.c_fc.register_forward_pre_hook(lambda m, x: x[0].bfloat16())
    model.transformer.h[1].mlp.c_fc.bias.data = model.transformer.h[1].mlp.c_fc.bias.data.bfloat16()
    model.transformer.h[1].mlp.c_fc.register_forward_hook(lambda m, x, y: y.float())
    assert HuggingFaceNetwork(model).precision == 2.0**-7


@pytest.mark.parametrize(
    ("dtype", "least", "near"), [("float32", 0.02, 7e-6), ("float16", 0.3, 0.01), ("bfloat16", 0.3, 0.07)]
)
def test_the_floor_is_what_rounding_does(dtype, least, near, rng):
    """Two runs whose prompts have tokens 30..59 that are nearly those from 0 to 29, against float64."""
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        size = {"n_embd": 256, "n_layer": 2, "n_positions": 80}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2 | size))
        with torch.no_grad():
            embedding = model.transformer.wte.weight
            embedding[30:] = embedding[:30] + near * (embedding[30:] - embedding[:30])
        model = model.to(getattr(torch, dtype))
    a, after = rng.integers(0, 30, (1, 16)), rng.integers(0, 30, (1, 60))
    texts = [np.hstack([prompt, after]) for prompt in (a, a + 30)]

    def run():
        net = HuggingFaceNetwork(model)
        one, other = (states(net, text) for text in texts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return measure(net, (a, a + 30, after)), [
                (x - y.astype(np.float64))[:, 16:] for x, y in zip(one, other, strict=True)
            ]

    rounded, difference = run()
    model.double()
    exact, true = run()
    errors, wrong = [], []
    for layer in (1, 2):
        noise = np.linalg.norm(difference[layer] - true[layer], axis=-1)
        # how exactly a library's sums are rounded is its own affair, but not more than three times as documented
        assert least < np.median(noise / rounded.floor[:, layer - 1]) < 3
        error, clear = np.abs(np.log(rounded.distance(layer) / exact.distance(layer))), rounded.reliable(layer)
        errors += error[:, clear].ravel().tolist()
        wrong += error[:, ~clear].ravel().tolist()
    assert min(len(errors), len(wrong)) > 10
    # noise of at most twice the floor, at right angles: sqrt(1 + (2/3)^2) = 1.2
    assert np.quantile(errors, 0.95) < np.log(1.2)
    assert np.median(wrong) > np.log(1.03)  # what is marked is wrong
