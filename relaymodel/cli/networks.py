"""The command that measures forgetting on a network."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.checks import choice, show
from relaymodel.cli.inputs import (
    DEEPEST,
    LONGEST,
    NUMPY,
    BiasStrength,
    Continuation,
    Length,
    NumpyDepth,
    PromptA,
    PromptB,
    PromptLength,
    Seed,
    Untrained,
    announce,
    check_prompts,
    choose_network,
    choose_texts,
    one_line_warnings,
)
from relaymodel.cli.numbers import number, time, whole
from relaymodel.cli.options import Csv, Force, Json, Plot
from relaymodel.cli.output import Output, print_json, print_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from relaymodel.networks.protocol import Measurement

MOST_PAIRS = 10**4
SHOWN = 5  # layers in the figure of the curves


def measure(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="untrained-numpy (random weights, NumPy alone), or a causal model of transformers: a folder, a GGUF "
            "file, a hub name; with --untrained also a config.json.",
        ),
    ],
    prompt_a: PromptA = None,
    prompt_b: PromptB = None,
    continuation: Continuation = None,
    pairs: Annotated[
        str | None, typer.Option("--pairs", metavar="N", help="Pairs of prompts.  [default: 8; with --prompt-a 1]")
    ] = None,
    prompt: PromptLength = "64",
    t_max: Length = "2048",
    t_min: Annotated[
        str | None, typer.Option("--t-min", metavar="T", help="Start of the fit.  [default: 16, if the curve allows]")
    ] = None,
    bias: BiasStrength = "0",
    layers: Annotated[
        str | None, typer.Option("--layers", metavar="K[,K...]", help="Which layers, or first-last.  [default: all]")
    ] = None,
    final_norm: Annotated[bool, typer.Option("--final-norm", help="Also measure behind the final norm.")] = False,
    metric: Annotated[str, typer.Option("--metric", help="euclidean, relative (to the norm) or cosine.")] = "euclidean",
    untrained: Untrained = False,
    depth: NumpyDepth = None,
    seed: Seed = "0",
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32, float64, bfloat16 or float16.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="FOLDER", help="Keep finished pairs here, and go on from what is there."),
    ] = None,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Measure how far two prompts stay apart in a network.

    Two prompts are followed by the same continuation; the distance between the hidden states is taken at every token
    and layer, for several pairs.  Without files, pairs are cut from English text or drawn at random.
    """
    from relaymodel.networks.protocol import measure
    from relaymodel.networks.protocol.measurement import METRICS
    from relaymodel.networks.transformer import Transformer
    from relaymodel.simulation import PromptBias

    output = Output(json, csv, plot, force)
    choice("--metric", metric, METRICS)
    strength, start = number("--bias", bias), None if t_min is None else time("--t-min", t_min)
    P, steps = whole("--prompt", prompt, most=LONGEST), whole("--t-max", t_max, least=6, most=LONGEST)
    random = whole("--seed", seed, least=0)
    if start is not None and start > steps / 2:
        raise ValueError(f"--t-min must be at most half of --t-max = {steps}, to leave a window, got {t_min}")
    if resume == Path():
        raise ValueError("--resume must name a folder, got an empty name")
    check_prompts(prompt_a, prompt_b)
    kept = None if layers is None else _layers(layers)
    source = continuation or ("random" if model == NUMPY else "english")
    count = whole("--pairs", pairs, most=MOST_PAIRS) if pairs is not None else 8 if prompt_a is None else 1
    with one_line_warnings():
        network = choose_network(model, untrained, depth, random, dtype, P + steps)
        texts = choose_texts(network, prompt_a, prompt_b, source, count, P, steps, random)
        if isinstance(network, Transformer):
            announce(count * network.architecture.operations(P + steps))
        measured = measure(
            network,
            texts,
            bias=PromptBias(strength) if strength else None,
            layers=kept,
            final_norm=final_norm,
            resume=resume,
            progress=True,
        )
    if output.csv is not None:
        output.written(measured.to_csv(output.csv, metric=metric, overwrite=force))
    found, without = measured.alphas(metric=metric, t_min=start)
    fits = list(found.values())
    output.write_figure(lambda: _draw(measured, list(found), metric, start))
    columns: dict[str, list[Any]] = {
        "layer": list(found),
        "alpha": [fit.value for fit in fits],
        "stderr": [fit.stderr for fit in fits],
        "noise_stderr": [fit.noise_stderr for fit in fits],
        "from_t": [int(fit.window[0]) for fit in fits],
        "to_t": [int(fit.window[1]) for fit in fits],
    }
    if json:
        each = {"each": [list(fit.each) for fit in fits]}
        left = {"left_out": {str(layer): reason for layer, reason in without.items()}} if without else {}
        print_json({"provenance": dict(measured.provenance), "metric": metric, **columns, **each, **left})
        return
    for key, value in measured.provenance.items():
        print(f"{key + ':':14} {value}")
    print()
    print_table(columns, {"alpha": 4, "stderr": 2, "noise_stderr": 2})
    for layer, reason in without.items():
        print(f"layer {layer} is left out: {reason}", file=sys.stderr)
    for layer, fit in found.items():
        if "left out" in fit.provenance:
            print(f"layer {layer}, left out: {fit.provenance['left out']}", file=sys.stderr)


def _layers(text: str) -> list[int]:
    """Return the layers that the option names.

    >>> _layers("1,4-6,12")
    [1, 4, 5, 6, 12]
    """
    chosen: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low = whole("--layers", first, least=1, most=DEEPEST)
        high = whole("--layers", last, least=1, most=DEEPEST) if dash else low
        if high < low:
            raise ValueError(f"--layers must go up, as in 1,4-6, got {show(part)}")
        chosen += range(low, high + 1)
    return chosen


def _draw(measured: "Measurement", layers: list[int], metric: str, start: float | None) -> "Figure":
    from relaymodel.plotting import panels, plot_layer_exponents, plot_measurement

    step = -(-len(layers) // SHOWN)
    figure = panels(2)
    plot_measurement(measured, layers[::-1][::step][::-1], metric=metric, ax=figure.axes[0])
    plot_layer_exponents({"_": measured}, metric=metric, t_min=start, ax=figure.axes[1])
    return figure
