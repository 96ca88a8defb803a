"""The published numbers: what each row compares can fail."""

from pathlib import Path

import numpy as np
import pytest

from relaymodel.report.claims.evidence import CONTRADICTED
from relaymodel.report.evidence import ROWS, networks, rates, scaling, tokens
from relaymodel.report.evidence.row import number

QUICK = ("masks", "dead_zone", "scaled_softmax", "llama", "critical", "precision")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.check.__name__ in QUICK], ids=lambda row: row.check.__name__
)
def test_rows_say_what_is_expected(row):
    outcome = row.check(Path())
    assert outcome.holds != (row.title in CONTRADICTED), [c for c in outcome.comparisons if not c.agrees]
    assert outcome.how


def test_every_row_has_a_source_and_a_title_of_its_own():
    assert len({row.title for row in ROWS}) == len(ROWS) >= 10
    assert all(row.source and row.says for row in ROWS)
    assert set(CONTRADICTED) <= {row.title for row in ROWS}


def test_a_number_agrees_if_it_rounds_to_the_published_one():
    assert number("x", 0.43, 0.4349, digits=2).agrees
    assert not number("x", 0.43, 0.4351, digits=2).agrees


@pytest.mark.parametrize(
    ("row", "module", "name", "wrong"),
    [
        ("masks", tokens, "token_influence", lambda model, j, n: 0.9 * np.asarray(j, float) ** -1.0),
        ("scaled_softmax", scaling, "top", lambda logit, n: 0.5),
        ("llama", scaling, "temperature", lambda n: 1.0),
        ("precision", rates, "BF16_BITS", 24),
    ],
)
def test_a_wrong_computation_does_not_agree(monkeypatch, row, module, name, wrong):
    monkeypatch.setattr(module, name, wrong)
    check = next(other.check for other in ROWS if other.check.__name__ == row)
    try:
        assert not check(Path()).holds
    except (IndexError, ValueError):
        assert row == "precision"  # nothing rounds to 1 below n = 5000


def test_bf16_rounds_as_bf16_does():
    """A float32 whose low 16 bits are rounded away, ties to even."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0.1, 4, 1000).astype(np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    np.testing.assert_array_equal(rates.bf16(x.astype(float)), rounded)


@pytest.mark.parametrize(
    ("trained", "at_last", "agree"), [(0.6, "reversed", True), (0.4, "reversed", False), (0.6, "stopped", False)]
)
def test_stored_measurements_decide(tmp_path, trained, at_last, agree):
    """Tables as the studies write them, with numbers that the published ranges hold, or do not."""
    columns = "alpha_16,stderr_16,alpha_64,stderr_64,verdict"
    model = [
        f"{name},0,{layer},{value},.01,.5,.01,decaying,8"
        for name, value in (("trained", trained), ("untrained", 0.3))
        for layer in (15, 30)
    ]
    found = [(0, "none", "decaying"), (0, "strength 4", "stopped"), (9, "none", "decaying"), (9, "strength 4", at_last)]
    checkpoints = [f"{step},{bias},5,.4,.01,.4,.01,{said},3" for step, bias, said in found]
    (tmp_path / "training").mkdir()
    (tmp_path / "smollm2_biases.csv").write_text("\n".join([f"weights,bias,layer,{columns},pairs", *model]))
    (tmp_path / "training" / "biases.csv").write_text("\n".join([f"step,bias,layer,{columns},seeds", *checkpoints]))
    assert networks.exponents(tmp_path).holds == agree


@pytest.mark.parametrize(("p", "agree"), [(0.8, True), (0.5, False)])
def test_stored_responses_decide(tmp_path, p, agree):
    for name, value in (("instruments", p), ("instruments_untrained", 0.1)):
        lines = [f'x,"response p, layer {layer}",{value},.01' for layer in (15, 30)]
        table = ["# about: x", "weights,quantity,value,stderr", 'x,"collapse",.1,', *lines]
        (tmp_path / f"{name}.csv").write_text("\n".join(table))
    model = [f"trained,0,{layer},{networks.implied(0.8)},.01,.5,.01,decaying,8" for layer in (15, 30)]
    columns = "weights,bias,layer,alpha_16,stderr_16,alpha_64,stderr_64,verdict,pairs"
    (tmp_path / "smollm2_biases.csv").write_text("\n".join([columns, *model]))
    assert networks.responses(tmp_path).holds == agree


def test_stored_attention_decides(tmp_path):
    columns = "weights,tokens,texts,verdict,distance,distance_stderr,dilution,dilution_stderr,apparent"
    (tmp_path / "attention_decay.csv").write_text(
        f"{columns}\ntrained,512,6,both,.64,.03,.3,.02,.75\nuntrained,512,6,dilution,.0,.001,1,.001,.43\n"
    )
    assert [c.agrees for c in networks.attention_decay(tmp_path).comparisons] == [True, False]
