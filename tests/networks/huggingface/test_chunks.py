"""Long texts in pieces with a cache of keys and values, and states that stay on a device of their own."""

import numpy as np
import pytest

from relaymodel import PromptBias
from relaymodel.cli import main
from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.protocol import Measurement, measure
from relaymodel.networks.protocol.distance import DistanceRecorder, distances, tensor_distances
from relaymodel.simulation import SplitSoftmax
from tests.networks.huggingface.models import build, torch


@pytest.fixture
def pairs(rng):
    return (*rng.integers(0, 60, (2, 8)), rng.integers(0, 60, 20))


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2"])
@pytest.mark.parametrize("chunk", [5, pytest.param(8, marks=pytest.mark.exhaustive)])
def test_pieces_are_measured_as_one_pass_within_rounding(name, chunk, pairs):
    """In float64, so that rounding is far below what a key forgotten or a mask moved by one would make."""
    model = build(name, dtype=torch.float64)
    rtol = 3e-6 if name == "gemma2" else 1e-11  # gemma2 goes through float32 whatever its weights are in
    asked = {"final_norm": True, "instruments": ["distance", "next_token"]}
    for bias in (None, PromptBias(1)) if name != "gemma2" else (None,):  # gemma2 has windows
        whole = measure(HuggingFaceNetwork(model), pairs, bias=bias, **asked)
        pieces = measure(HuggingFaceNetwork(model, chunk=chunk), pairs, bias=bias, **asked)
        assert pieces.provenance["pieces"] == f"of {chunk} tokens"
        for field in ("euclidean", "norms"):
            np.testing.assert_allclose(getattr(pieces, field), getattr(whole, field), rtol=rtol, atol=1e-13)


def test_states_are_shown_piece_by_piece(pairs):
    shown = []
    network = HuggingFaceNetwork(build("llama"), chunk=6)
    network.observe(np.array([pairs[2]]), lambda layer, states: shown.append((layer, states.shape[1])))
    assert [size for layer, size in shown if layer == 1] == [6, 6, 6, 2]
    assert [layer for layer, _ in shown] == [*range(network.depth + 1)] * 4


def test_the_shell_measures_in_pieces(tmp_path, capsys):
    build("llama", dtype=torch.float32).save_pretrained(tmp_path)
    texts = ["--continuation", "random", "--prompt", "8", "--t-max", "24", "--pairs", "2"]
    found = []
    for more in ([], ["--chunk", "7", "--device", "cpu"]):
        out = tmp_path / f"{len(more)}.npz"
        assert main(["measure", str(tmp_path), *texts, "--save", str(out), *more]) == 0, capsys.readouterr().err
        found.append(Measurement.from_npz(out))
    assert found[1].provenance["pieces"] == "of 7 tokens"
    np.testing.assert_allclose(found[1].euclidean, found[0].euclidean, rtol=1e-4, atol=1e-6)


def test_what_needs_one_piece_is_refused(pairs):
    network = HuggingFaceNetwork(build("llama"), chunk=6)
    with pytest.raises(ValueError, match="chunk must be left out for attention"):
        measure(network, pairs, instruments=["attention"])
    with pytest.raises(ValueError, match="chunk must be left out for a rule of shares"):
        measure(network, pairs, bias=SplitSoftmax(0.5))
    with pytest.raises(ValueError, match="chunk must be left out for a bias beside sliding windows"):
        measure(HuggingFaceNetwork(build("gemma2"), chunk=6), pairs, bias=PromptBias(1))
    with pytest.raises(ValueError, match="chunk must be at least 1"):
        HuggingFaceNetwork(build("llama"), chunk=0)
    with pytest.raises(ValueError, match="chunk must be left out for LlamaForCausalLM"):
        HuggingFaceNetwork(forgetful(build("llama")), chunk=6)


def forgetful(model):
    """A model that loses its cache."""
    body, forward = model.model, model.model.forward
    body.forward = lambda *given, past_key_values=None, **named: forward(*given, **named)
    return model


def test_tensors_are_reduced_where_they_are(rng):
    """On torch's meta device nothing can be computed elsewhere: what leaves it would raise."""
    meta = tensor_distances(torch.empty((2, 5, 8), device="meta"))
    assert (meta.device.type, tuple(meta.shape), meta.dtype) == ("meta", (4, 5), torch.float64)
    states = rng.normal(size=(2, 5, 8))
    np.testing.assert_allclose(tensor_distances(torch.tensor(states)).numpy(), distances(states), rtol=1e-14)
    recorders = [DistanceRecorder((1,), 2, 3, lambda layer: None) for _ in range(2)]
    for recorder, shown in zip(recorders, (states, torch.tensor(states)), strict=True):
        recorder.visit(1, shown[:, :3])
        recorder.visit(1, shown[:, 3:])
    np.testing.assert_allclose(recorders[0].result(), recorders[1].result(), rtol=1e-14)


def test_states_stay_on_the_models_device(pairs, monkeypatch):
    """A pass on the meta device, in pieces: every state is shown as a tensor there."""
    from transformers import masking_utils

    network = HuggingFaceNetwork(build("llama"), chunk=6)
    # the library looks at the numbers of positions, which the device does not have
    monkeypatch.setattr(masking_utils, "find_packed_sequence_indices", lambda positions: None)
    network.model.to("meta")
    shown = []
    network.observe(np.array([pairs[2]] * 2), lambda layer, states: shown.append(states))
    assert {states.device.type for states in shown} == {"meta"}
    assert sum(states.shape[1] for states in shown) == 20 * (network.depth + 1)
