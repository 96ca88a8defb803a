"""What control refuses, and how its results show themselves."""

from fractions import Fraction

import pytest

from relaymodel import Layer, PromptBias, RelayModel, Reminders
from relaymodel.control import (
    bias_limit,
    biased_influence,
    phase_diagram,
    plan_reminders,
    reminder_influence,
    reminder_limit,
    turning_point,
)
from relaymodel.simulation import (
    ConstantShare,
    EvenReminders,
    ReminderBlocks,
)
from tests.control.cases import SIX

BAD = [
    (lambda: PromptBias("1"), TypeError, "strength must be an int, float"),
    (lambda: PromptBias(float("nan")), ValueError, "strength must be finite"),
    (lambda: PromptBias(1, 1e4), ValueError, "offset must be at most 1000 in size"),
    (lambda: PromptBias(1).log_bias([-1], 4), ValueError, "t must be at least 0"),
    (lambda: PromptBias(1).log_bias([1], 0), ValueError, "prompt must be at least 1"),
    (lambda: ConstantShare(1), ValueError, "share must lie between 0 and 1"),
    (lambda: ConstantShare(Fraction(1, 10**400)), ValueError, "share must lie between"),
    (lambda: Reminders(8, 9), ValueError, "length must be at most every = 8"),
    (lambda: Reminders(8.0, 1), TypeError, "every must be an integer"),
    (lambda: Reminders(8, 3, first=7), ValueError, "first must be at most every - length"),
    (lambda: Reminders(1, 1).intervals(10**9), ValueError, "ask for fewer steps"),
    (lambda: ReminderBlocks(((3, 2),)), ValueError, "at least their start"),
    (lambda: ReminderBlocks.at([0]), ValueError, "tokens must be at least 1"),
    (lambda: biased_influence(SIX, lambda t: t, 1), TypeError, "simulate takes any function"),
    (lambda: biased_influence(SIX, PromptBias(1), 1.5), ValueError, "t must be whole numbers from 1"),
    (lambda: biased_influence(SIX, PromptBias(1), float("inf")), ValueError, "t must be whole numbers"),
    (lambda: biased_influence(RelayModel(1, [Layer(1, 1, 0.5)]), ConstantShare(0.5), 1), ValueError, "not uniform"),
    (lambda: biased_influence(RelayModel(1, [Layer(1, 1, 0.5)]), PromptBias(1), 1e13), ValueError, "at most 2\\^40"),
    (lambda: bias_limit(RelayModel(1, [Layer(1, 1, 0.5)]), ConstantShare(0.5)), ValueError, "not uniform"),
    (
        lambda: turning_point(RelayModel(1, [Layer(1, recency=0.5)]), PromptBias(0.5), steps=2**12),
        ValueError,
        "beyond the turn",
    ),
    (lambda: turning_point(RelayModel(1, [Layer(1, recency=0.5)]), PromptBias(2), steps=2**23), ValueError, "2\\^22"),
    (lambda: plan_reminders(RelayModel(1, [Layer(1, recency=0.5)]), 1), ValueError, "one uniform head"),
    (lambda: phase_diagram(SIX, [1], recencies=[0, 1]), ValueError, "recencies must be less than 1"),
    (lambda: phase_diagram(SIX, [1], recencies=[0.5, 0]), ValueError, "recencies must be increasing"),
    (lambda: phase_diagram(SIX, [1], recencies=[0.5], horizon=2**21), ValueError, "from 2 to 2\\^20"),
    (lambda: biased_influence("model", PromptBias(1), 1), TypeError, "model must be a RelayModel"),
    (lambda: biased_influence(SIX, PromptBias(1), [10**400]), ValueError, "t must be whole numbers from 1 to 1e300"),
    (lambda: biased_influence(RelayModel(10**400, [Layer(1)]), PromptBias(1), 1), ValueError, "prompt must be at most"),
    (lambda: turning_point(SIX, PromptBias(1.5, -1000)), ValueError, "influence must lie within the range of float64"),
    (lambda: turning_point(SIX, PromptBias(1 + Fraction(1, 10**310))), ValueError, "before t = 1e300"),
    (lambda: turning_point(SIX, PromptBias(1 + Fraction(1, 10**299))), ValueError, "before t = 1e300"),
    (lambda: bias_limit(SIX, PromptBias(-0.1)), ValueError, "strength of at least 0"),
    (lambda: bias_limit(RelayModel(1, [Layer(0)]), PromptBias(1)), ValueError, "relaying layer"),
    (lambda: bias_limit(RelayModel(1, [Layer(1), Layer(0, 0)]), PromptBias(0.5)), ValueError, "leading term other"),
    (lambda: bias_limit(SIX, PromptBias(0.5)).leading(1), ValueError, "t must be greater than 1"),
    (lambda: turning_point(SIX, PromptBias(1)), ValueError, "strength above 1"),
    (lambda: turning_point(SIX, ConstantShare(0.5)), TypeError, "PromptBias where steps is not given"),
    (lambda: turning_point(SIX, PromptBias(2), steps=2**23), ValueError, "at most 2\\^22"),
    (lambda: turning_point(RelayModel(1, [Layer(-1)]), PromptBias(2)), ValueError, "no negative strength"),
    (lambda: phase_diagram(SIX, [1, 1]), ValueError, "strengths must be increasing"),
    (lambda: phase_diagram(SIX, [-1]), ValueError, "strengths must be from 0"),
    (lambda: phase_diagram(SIX, [1], horizon=1), ValueError, "horizon must be a whole number"),
    (lambda: phase_diagram(SIX, [1], tolerance=0), ValueError, "tolerance must be positive"),
    (lambda: phase_diagram(RelayModel(1, [Layer(0), Layer(1)]), [1]), ValueError, "relay in its first layer"),
    (lambda: reminder_influence(SIX, [(1, 2)], 0), ValueError, "t must be whole numbers from 1 to 2\\^52"),
    (lambda: reminder_influence(SIX, Reminders(100, 90), 4 * 10**7), ValueError, "use simulate"),
    (lambda: reminder_influence(SIX, 3, 1), TypeError, "reminders must be pairs"),
    (lambda: reminder_limit(SIX, [(1, 2)]), TypeError, "Reminders or ReminderBlocks"),
    (lambda: plan_reminders(SIX, 0), ValueError, "level must be positive"),
    (lambda: plan_reminders(SIX, 12), ValueError, "at most f\\(1\\) = 11.390625"),
    (lambda: plan_reminders(SIX, 1, 0), ValueError, "horizon must be at least 1"),
    (lambda: EvenReminders(1, 2), ValueError, "density must lie between 0 and 1"),
    (lambda: EvenReminders(Fraction(1, 3), 5).intervals(10**9), ValueError, "ask for fewer steps"),
    (lambda: plan_reminders(SIX, 1, 10, length=3), ValueError, "length must be left out"),
    (lambda: plan_reminders(SIX, Fraction(1, 10**14)), ValueError, "level must need more"),
    (lambda: plan_reminders(RelayModel(1, [Layer(1, -1)]), 1), ValueError, "no negative strength"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message[:40] for _, _, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_results_show_themselves_in_a_notebook():
    results = [
        bias_limit(SIX, PromptBias(0.5)),
        turning_point(SIX, PromptBias(1.5)),
        phase_diagram(SIX, [0, 1]),
        reminder_limit(SIX, Reminders(8, 2)),
        plan_reminders(SIX, 1),
        plan_reminders(SIX, 1, 10**5),
    ]
    for result in results:
        page = result._repr_html_()
        assert page.startswith("<table>")
        assert "method" in page or "reasons" in page
