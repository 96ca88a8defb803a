"""The published numbers: what each row compares can fail."""

from pathlib import Path

import numpy as np
import pytest

from relaymodel.report.claims.evidence import CONTRADICTED
from relaymodel.report.evidence import ROWS, rates, scaling, tokens
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
