"""How long a step of a slider takes on the page to play with, drawing included, in Debian's Chromium.

python -m pytest benchmarks/test_explore_speed.py -s
"""

from benchmarks.timing import require, table
from tests.explore.conftest import chromium, visit  # noqa: F401  (fixtures)

SETTINGS = {
    "closed form, L = 12": {},
    "closed form, L = 32": {"depth": 32},
    "bias, L = 12": {"bias": True, "strength": 2},
    "recency, L = 12": {"recency": 0.9},
    "recency and bias, L = 32, P = 4096": {"recency": 0.9, "bias": True, "strength": 2, "depth": 32, "prompt": 4096},
    "reminders, L = 12": {"remind": True},
    "reminders and bias, L = 32": {"remind": True, "bias": True, "strength": 2, "depth": 32},
    "reminders and recency, L = 12": {"remind": True, "recency": 0.9},
    "reminders and recency, L = 32": {"remind": True, "recency": 0.9, "depth": 32},
}
DEEP = "reminders and recency, L = 32"


def test_a_step_of_a_slider(visit):  # noqa: F811
    """Against ten million dependent multiplications, 16.5 ms by themselves: 50 ms are three of them."""
    page = visit()
    rows = page.evaluate(
        """settings => Object.entries(settings).map(([name, setting]) => {
             const taken = [], ratios = [];
             for (let step = 0; step < 25; step++) {
               // every value that could be kept from the step before changes
               Object.assign(explore.state, explore.presets[0].set, { every: 512, length: 64, offset: 0 }, setting);
               explore.state.relay += step / 1000;
               if (explore.state.recency) explore.state.recency -= step / 1000;
               const start = performance.now();
               explore.redraw();
               document.getElementById('plot').getBBox();
               const middle = performance.now();
               let x = 1;
               for (let i = 0; i < 1e7; i++) x = x * 0.9999 + 1e-4;
               taken.push(middle - start);
               ratios.push((middle - start) / (performance.now() - middle) * x);
             }
             const median = values => values.sort((a, b) => a - b)[12];
             return [name, median(taken), median(ratios)];
           })""",
        SETTINGS,
    )
    table("one step of a slider, t to 1e5", ("", "ms", "/ reference"), rows)
    require([(name, ratio, "<=", 4.5 if name == DEEP else 3) for name, _, ratio in rows])
