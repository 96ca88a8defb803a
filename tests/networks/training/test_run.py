"""The bias of a training, against an independent mask."""

from dataclasses import replace

import pytest

from relaymodel import PromptBias
from relaymodel.networks.texts import english
from relaymodel.networks.training import run, train
from relaymodel.networks.training.text import split
from relaymodel.simulation import ConstantShare
from tests.networks.training.grown import PLAIN, REMOVED, SMALL, TRAINED

torch = pytest.importorskip("torch")


class TestBias:
    @pytest.mark.parametrize("bias", [None, PromptBias(1), PromptBias(-0.5, 2), ConstantShare(0.25)])
    def test_loss_and_gradients_are_those_of_an_independent_mask(self, bias, tmp_path):
        """Float64, weights large enough for attention to matter, against a mask written out query by query."""
        corpus = split(english(), SMALL)
        subject = run.Run(tmp_path, corpus, SMALL, 0, bias, {}, {})
        torch.manual_seed(1)
        subject.model = run.build(SMALL).double()
        with torch.no_grad():
            for block in subject.model.transformer.h:
                block.attn.c_attn.weight *= 20
        texts = corpus.batch(SMALL, 0, 0)
        n, P = SMALL.context, SMALL.prompt
        mask = torch.full((1, 1, n, n), -1e30, dtype=torch.float64)
        for query in range(n):
            for key in range(query + 1):
                t = query + 1 - P
                mask[0, 0, query, key] = 0
                if bias is not None and key < P and t > 0:
                    mask[0, 0, query, key] = float(bias.log_bias([t], P)[0])
        ids = torch.from_numpy(texts)
        logits = subject.model(input_ids=ids, attention_mask=mask.expand(len(ids), 1, n, n), use_cache=False).logits
        expected = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        wanted = torch.autograd.grad(expected, list(subject.model.parameters()))
        found = torch.autograd.grad(subject.loss(texts), list(subject.model.parameters()))
        for one, other in zip(found, wanted, strict=True):
            assert torch.allclose(one, other, rtol=1e-9, atol=1e-12)
        if bias is not None:
            subject.bias = None
            plain = torch.autograd.grad(subject.loss(texts), list(subject.model.parameters()))
            assert max(float((one - other).abs().max()) for one, other in zip(found, plain, strict=True)) > 1e-4

    def test_single_arms(self, tmp_path):
        """Without bias there is one way to measure; with a bias alone there is one training."""
        plain = train(english(), tmp_path / "plain", recipe=SMALL)
        assert plain.arms == (PLAIN,)
        shared = train(english(), tmp_path / "share", recipe=SMALL, bias=ConstantShare(0.5), seed=3)
        assert shared.arms == (TRAINED, REMOVED)
        assert shared.seeds == (3,)
        assert shared.configuration["command"].startswith("relaymodel train text --share 0.5 --seeds 1 --seed 3 --pre")
        assert sorted(path.name for path in (tmp_path / "share").iterdir() if path.is_dir()) == ["bias-seed-3"]
        # a constant share of uniform attention: no decay at all, which is seen to 2 % in a narrow network
        assert abs(shared.alpha(TRAINED).alpha[0]) < 0.02
        one = plain.alpha(PLAIN)
        assert one.stderr.tolist() == [row.stderr for row in plain.rows if row.layer == one.layer]


def test_units_and_rotary_positions(tmp_path):
    """A Llama whose tokens are learned from the text; its checkpoint measures itself again to the last bit."""
    recipe = replace(SMALL, vocabulary=300, positions="rotary", steps=1, checkpoints=1)
    grown = train(english(), tmp_path / "units", recipe=recipe, bias=PromptBias(1))
    assert "--set vocabulary=300 --set positions=rotary" in grown.configuration["command"]
    network = grown.network(TRAINED, 0, 1)
    assert (network.vocabulary, type(network.model).__name__) == (300, "LlamaForCausalLM")
    again = run.measure_checkpoint(network, split(english(), recipe), recipe, 0, PromptBias(1))
    row = next(row for row in grown.rows if (row.arm, row.step, row.layer) == (TRAINED, 1, 2))
    assert again.alpha(2).value == row.alpha
