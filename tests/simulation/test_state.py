"""Going on repeats every bit, and what belongs to another simulation is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Curve, Layer, RelayModel
from relaymodel.simulation import Layout, Simulation, SimulationState, simulate
from tests.simulation.cases import MODEL, TINY, every, in_pieces, models


def squared(t):
    return 0.1 * np.log1p(t) ** 2


@given(
    models(), st.sets(st.integers(1, 80), min_size=1, max_size=6), TINY, st.sampled_from(["plain", "bias", "reminders"])
)
def test_going_on_repeats_every_bit(tmp_path_factory, model, stops, layout, kind):
    extras = {"plain": {}, "bias": {"bias": squared}, "reminders": {"reminders": [(2, 3), (9, 30), (31, 31)]}}[kind]
    if kind == "bias":
        model = RelayModel(model.prompt, [Layer(l.relay, l.residual) for l in model.layers])
    stops = sorted(stops)
    t, D = Simulation(model, layout=layout, **extras).advance(stops[-1], samples=every(stops[-1]))
    again = in_pieces(model, stops, tmp_path_factory.mktemp("state"), layout, **extras)
    assert [x.tolist() for x in again] == [t.tolist(), D.tolist()]


def test_stages_sample_the_grid_of_the_whole_run():
    model = RelayModel.uniform(prompt=8, depth=2, relay=1)
    whole = simulate(model, 10**5)
    simulation = Simulation(model)
    pieces = [simulation.advance(steps) for steps in (10**3, 10**5)]
    assert np.concatenate([t for t, _ in pieces]).tolist() == whole.t.tolist()
    assert np.concatenate([D for _, D in pieces]).tolist() == whole.distance.tolist()


def test_an_interrupted_stage_leaves_the_state_as_it_was():
    simulation = Simulation(RelayModel.uniform(prompt=8, depth=2, relay=1))
    simulation.advance(100)
    before = simulation.state

    def interrupt(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulation.advance(10**6, progress=interrupt)
    assert simulation.state is before


def test_bad_states(tmp_path):
    simulation = Simulation(MODEL)
    simulation.advance(50)
    state = simulation.state
    with pytest.raises(ValueError, match="state must come from the same model"):
        Simulation(MODEL.with_prompt(5), state=state)
    with pytest.raises(ValueError, match=r"state must come from the same model.* with a bias$"):
        Simulation(MODEL, bias=np.zeros_like, state=state)
    with pytest.raises(ValueError, match="layout must be left out"):
        Simulation(MODEL, state=state, layout=Layout(2, 2))
    with pytest.raises(TypeError, match="state must be a SimulationState"):
        Simulation(MODEL, state=50)
    with pytest.raises(ValueError, match="steps must be beyond the 50 continuation tokens simulated so far, got 50"):
        simulation.advance(50)
    with pytest.raises(ValueError, match="samples must lie beyond the state's t = 50, got 50"):
        simulation.advance(100, samples=[50, 100])
    with pytest.raises(ValueError, match=r"carries must have shape \(2, 2\), got \(1, 2\)"):
        SimulationState(MODEL, 5, [[1.0, 0.0]], Layout())
    with pytest.raises(ValueError, match="t must be at least 0"):
        SimulationState(MODEL, -1, state.carries, Layout())
    with pytest.raises(ValueError, match="columns must be a power of 2, got 6"):
        Layout(2, 6)
    file = state.to_npz(tmp_path / "state.npz")
    with pytest.raises(FileExistsError):
        state.to_npz(file)
    with pytest.raises(FileNotFoundError):
        SimulationState.from_npz(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("t,distance\n")
    with pytest.raises(ValueError, match=r"text\.npz must be an NPZ file"):
        SimulationState.from_npz(tmp_path / "text.npz")
    curve = Curve([1, 2], [1.0, 0.5]).to_npz(tmp_path / "curve.npz")
    with pytest.raises(ValueError, match=r"curve\.npz must hold an array named carries"):
        SimulationState.from_npz(curve)
    np.savez(tmp_path / "other.npz", facts=np.array("{}"), carries=np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"other\.npz must hold a state that"):
        SimulationState.from_npz(tmp_path / "other.npz")
