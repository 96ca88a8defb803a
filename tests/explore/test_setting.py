import pytest

from relaymodel import PromptBias, Reminders
from relaymodel.explore import Setting
from relaymodel.explore.setting import RANGES


def test_every_slider_has_a_value_within_its_bounds():
    values = Setting().to_dict()
    assert set(RANGES) | {"bias", "remind"} == set(values)
    assert all(RANGES[name][0] <= values[name] <= RANGES[name][1] for name in RANGES)


def test_what_is_not_in_use_is_not_in_the_link():
    assert "bias" not in Setting().fragment
    assert "every" not in Setting().fragment
    assert (
        "&bias=0.5&offset=1&every=100&length=10&"
        in Setting(bias=PromptBias(0.5, 1), reminders=Reminders(100, 10)).fragment
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prompt": 5000}, "prompt must be from 1 to 4096"),
        ({"relay": 0}, "relay must be from 0.01 to 2"),
        ({"recency": 0.99}, "recency must be from -1 to 0.95"),
        ({"bias": PromptBias(9)}, "strength must be from 0 to 4"),
        ({"reminders": Reminders(10**4, 1)}, "every must be from 2 to 8192"),
        ({"reminders": Reminders(10, 2, first=1)}, "reminders must be the last tokens"),
        ({"window": (16, 20)}, "window must end at twice its start"),
        ({"window": (16, 10**6)}, "to must be from 2 to 100000"),
        ({"window": 16}, "window must be two whole numbers"),
        ({"relay": float("nan")}, "relay must be finite"),
    ],
)
def test_what_the_sliders_cannot_show_is_refused(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Setting(**wrong)


def test_what_is_not_a_bias_or_a_schedule_is_refused():
    with pytest.raises(TypeError, match="bias must be a PromptBias"):
        Setting(bias=1)
    with pytest.raises(TypeError, match="reminders must be Reminders"):
        Setting(reminders=(512, 64))
