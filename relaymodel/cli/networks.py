"""The command that measures forgetting on a network."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import relaymodel as rm
from relaymodel import plotting
from relaymodel.checks import choice, show
from relaymodel.cli import instruments
from relaymodel.cli.inputs import SPEED, Loading, Model, NetworkOptions, Start, announce, facts, one_line_warnings
from relaymodel.cli.interventions import Intervention
from relaymodel.cli.numbers import parts, whole
from relaymodel.cli.options import FIT, MAX_DEPTH, NETWORK, OUTPUT, flag, option
from relaymodel.cli.output import Listing, Output, filename, folder, say, written

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORTEST_DRAWN = 6  # tokens that an exponent can be read off
MOST_PAIRS = 10**4  # a slip of the keyboard beyond it
SHOWN_LAYERS = 5  # layers in the figure of the curves


def _layers(name: str, text: str) -> "Sequence[int]":
    """Return the layers that an option names.

    >>> _layers("--layers", "1,4-6,12")
    [1, 4, 5, 6, 12]
    """
    chosen: list[int] = []
    for part in parts(text):
        first, dash, last = part.partition("-")
        low = whole(MAX_DEPTH)(name, first)
        high = whole(MAX_DEPTH)(name, last) if dash else low
        if high < low:
            raise ValueError(f"{name} must go up, as in 1,4-6, got {show(part)}")
        chosen += range(low, high + 1)
    return chosen


def measure(
    model: Model,
    /,
    *,
    network: NetworkOptions = NetworkOptions(),
    loading: Loading = Loading(),
    intervention: Intervention = Intervention(),
    pairs: Annotated[
        int | None,
        option("N", "Pairs of prompts.  [default: 8; with --prompt-a 1]", whole(MOST_PAIRS), NETWORK),
    ] = None,
    layers: Annotated[
        list[int] | None,
        option("K[,K...]", "Which layers, or first-last.  [default: all]", _layers, NETWORK),
    ] = None,
    final_norm: Annotated[bool, flag("Also measure behind the final norm.", NETWORK)] = False,
    readings: Annotated[
        list[str] | None,
        option(
            "NAME[,NAME...]",
            "Also read next_token, attention, and response (passes of its own); tables stand beside --csv.",
            instruments.chosen,
            NETWORK,
            name="--instruments",
        ),
    ] = None,
    metric: Annotated[str, option("NAME", "euclidean, relative (to the norm) or cosine.", group=FIT)] = "euclidean",
    t_min: Start = None,
    resume: Annotated[
        Path | None,
        option("DIR", "Keep finished pairs here, and go on from what is there.", folder, OUTPUT),
    ] = None,
    save: Annotated[
        Path | None,
        option("FILE", "Write every distance of every pair: .npz, or .nc (netCDF, with xarray).", filename, OUTPUT),
    ] = None,
    output: Output = Output(),
) -> None:
    """Measure how far two prompts stay apart in a network.

    Two prompts are followed by the same continuation; the distance between the hidden states is taken at every token
    and layer, for several pairs.  Without files, pairs are cut from English text or drawn at random.
    """
    from relaymodel.networks.protocol.measurement import METRICS
    from relaymodel.networks.transformer import Transformer

    names = readings or []
    output.check(save=save, **instruments.beside(output.csv, names))
    if save is not None:
        choice("--save", save.suffix.lower(), (".npz", ".nc"))
    choice("--metric", metric, METRICS)
    texts = network.checked(model, prompt=64, t_max=2048)
    rule, reminders = intervention.rule(texts.log_bias), intervention.reminders
    steps = texts.t_max or 0
    if steps < SHORTEST_DRAWN:
        raise ValueError(f"--t-max must be at least {SHORTEST_DRAWN}, got {steps}")
    if t_min is not None and t_min > steps / 2:
        raise ValueError(f"--t-min must be at most half of --t-max = {steps}, to leave a window, got {t_min:g}")
    count = pairs or (8 if texts.prompt_a is None else 1)
    with one_line_warnings():
        runs = texts.network(model, loading)
        pairs_of_texts = texts.pairs(runs, count)
        if isinstance(runs, Transformer):
            announce(count * runs.architecture.operations((texts.prompt or 0) + steps) / SPEED)
        measured = rm.measure(
            runs,
            pairs_of_texts,
            bias=rule,
            reminders=reminders,
            layers=layers,
            final_norm=final_norm,
            instruments=names,
            resume=resume,
            progress=True,
        )
    if save is not None:
        write = measured.to_npz if save.suffix.lower() == ".npz" else measured.to_netcdf
        written(write(save, overwrite=output.force))
    found, without = measured.alphas(metric=metric, t_min=t_min)
    fits = list(found.values())
    columns: dict[str, list[Any]] = {
        "layer": list(found),
        "alpha": [fit.value for fit in fits],
        "stderr": [fit.stderr for fit in fits],
        "noise_stderr": [fit.noise_stderr for fit in fits],
        "from_t": [int(fit.window[0]) for fit in fits],
        "to_t": [int(fit.window[1]) for fit in fits],
    }
    result: dict[str, Any] = {"provenance": dict(measured.provenance), "metric": metric, **columns}
    result["each"] = [list(fit.each) for fit in fits]
    if without:
        result["left_out"] = {str(layer): reason for layer, reason in without.items()}

    for layer, reason in without.items():
        say(f"layer {layer} is left out: {reason}", file=sys.stderr)
    for layer, fit in found.items():
        if "left out" in fit.provenance:
            say(f"layer {layer}, left out: {fit.provenance['left out']}", file=sys.stderr)
    step = -(-len(found) // SHOWN_LAYERS)
    shown = list(found)[::-1][::step][::-1]
    tables = {name: instruments.columns(measured, name, shown, t_min) for name in names}
    for name, path in instruments.beside(output.csv, names).items():
        written(getattr(measured, name).to_csv(path, overwrite=output.force))
    output.give(
        columns,
        {},
        csv=partial(measured.to_csv, metric=metric),
        body=[
            *facts(measured.provenance),
            Listing(columns, {"alpha": 4, "stderr": 2, "noise_stderr": 2}),
            *map(instruments.listing, tables.values()),
        ],
        result=result | tables,
        draw=[
            lambda ax: plotting.plot_measurement(measured, shown, metric=metric, ax=ax),
            lambda ax: plotting.plot_layer_exponents({"_": measured}, metric=metric, t_min=t_min, ax=ax),
            *instruments.drawings(measured, names, shown),
        ],
    )
