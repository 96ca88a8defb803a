"""The command that measures forgetting on a network."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.checks import choice, show
from relaymodel.cli.numbers import number, time, whole
from relaymodel.cli.options import Csv, Force, Json, Plot
from relaymodel.cli.output import Output, print_json, print_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from relaymodel.networks.protocol import Measurement, Network, Pairs

NUMPY = "untrained-numpy"
WIDTH, HEADS = 256, 8  # of the NumPy network: seconds a pair, and wide enough for its exponents to be typical
LONGEST, MOST_PAIRS, DEEPEST = 10**6, 10**4, 1000  # beyond, memory ends before patience
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
    prompt_a: Annotated[Path | None, typer.Option("--prompt-a", metavar="FILE", help="Text of prompt A.")] = None,
    prompt_b: Annotated[Path | None, typer.Option("--prompt-b", metavar="FILE", help="Text of prompt B.")] = None,
    continuation: Annotated[
        str | None,
        typer.Option(
            "--continuation",
            metavar="FILE|random|generated|english",
            help="A text file; random tokens; written by the model after prompt A; or Python's documentation.  "
            "[default: english, for untrained-numpy random]",
        ),
    ] = None,
    pairs: Annotated[
        str | None, typer.Option("--pairs", metavar="N", help="Pairs of prompts.  [default: 8; with --prompt-a 1]")
    ] = None,
    prompt: Annotated[str, typer.Option("--prompt", metavar="P", help="Tokens of each prompt.")] = "64",
    t_max: Annotated[str, typer.Option("--t-max", metavar="T", help="Tokens of the continuation.")] = "2048",
    t_min: Annotated[
        str | None, typer.Option("--t-min", metavar="T", help="Start of the fit.  [default: 16, if the curve allows]")
    ] = None,
    bias: Annotated[
        str, typer.Option("--bias", metavar="B", help="Add B log(1 + t/P) to the logits of the prompt's keys.")
    ] = "0",
    layers: Annotated[
        str | None, typer.Option("--layers", metavar="K[,K...]", help="Which layers, or first-last.  [default: all]")
    ] = None,
    final_norm: Annotated[bool, typer.Option("--final-norm", help="Also measure behind the final norm.")] = False,
    metric: Annotated[str, typer.Option("--metric", help="euclidean, relative (to the norm) or cosine.")] = "euclidean",
    untrained: Annotated[bool, typer.Option("--untrained", help="Its architecture, random weights.")] = False,
    depth: Annotated[
        str | None, typer.Option("--depth", metavar="L", help="Layers of untrained-numpy.  [default: 12]")
    ] = None,
    seed: Annotated[str, typer.Option("--seed", metavar="S", help="Of random weights, tokens and pieces.")] = "0",
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
    from relaymodel.control import PromptBias
    from relaymodel.networks.protocol import measure
    from relaymodel.networks.protocol.measurement import METRICS

    output = Output(json, csv, plot, force)
    choice("--metric", metric, METRICS)
    strength, start = number("--bias", bias), None if t_min is None else time("--t-min", t_min)
    P, steps = whole("--prompt", prompt, most=LONGEST), whole("--t-max", t_max, least=6, most=LONGEST)
    random = whole("--seed", seed, least=0)
    if start is not None and start > steps / 2:
        raise ValueError(f"--t-min must be at most half of --t-max = {steps}, to leave a window, got {t_min}")
    if resume == Path():
        raise ValueError("--resume must name a folder, got an empty name")
    if (prompt_a is None) != (prompt_b is None):
        raise ValueError("--prompt-a and --prompt-b must be given together, or neither of them")
    for option, file in (("--prompt-a", prompt_a), ("--prompt-b", prompt_b)):
        if file is not None and not file.is_file():
            raise FileNotFoundError(f"{option} must be a text file, and there is none at {file}")
    kept = None if layers is None else _layers(layers)
    source = continuation or ("random" if model == NUMPY else "english")
    count = whole("--pairs", pairs, most=MOST_PAIRS) if pairs is not None else 8 if prompt_a is None else 1
    with _warnings():
        network = _network(model, untrained, depth, random, dtype, P + steps)
        chosen = _pairs(network, prompt_a, prompt_b, source, count, P, steps, random)
        measured = measure(
            network,
            chosen.prompt_a,
            chosen.prompt_b,
            chosen.continuation,
            bias=PromptBias(strength) if strength else None,
            layers=kept,
            final_norm=final_norm,
            checkpoint=resume,
            provenance={"continuation": chosen.description},
            progress=True,
        )
    if output.csv is not None:
        output.written(measured.to_csv(output.csv, metric=metric, overwrite=force))
    fits = [measured.alpha(layer, metric=metric, t_min=start) for layer in measured.layers if layer]
    output.write_figure(lambda: _draw(measured, metric, start))
    columns: dict[str, list[Any]] = {
        "layer": [fit.layer for fit in fits],
        "alpha": [fit.alpha for fit in fits],
        "stderr": [fit.stderr for fit in fits],
        "from_t": [int(fit.window[0]) for fit in fits],
        "to_t": [int(fit.window[1]) for fit in fits],
    }
    if json:
        each = {"each": [list(fit.each) for fit in fits]}
        print_json({"provenance": dict(measured.provenance), "metric": metric, **columns, **each})
        return
    for key, value in measured.provenance.items():
        print(f"{key + ':':14} {value}")
    print()
    print_table(columns, {"alpha": 4, "stderr": 2})


def _network(model: str, untrained: bool, depth: str | None, seed: int, dtype: str | None, length: int) -> "Network":
    """Return the network that MODEL names."""
    if model == NUMPY:
        import numpy as np

        from relaymodel.networks.transformer import Architecture, Transformer

        if dtype not in (None, "float64"):
            raise ValueError(f"--dtype must be left out for {NUMPY}, which computes in float64, got {dtype}")
        shape = Architecture(
            depth=12 if depth is None else whole("--depth", depth, most=DEEPEST),
            width=WIDTH,
            heads=HEADS,
            vocabulary=256,
            context=length,
        )
        return Transformer.random(shape, np.random.default_rng(seed))
    if depth is not None:
        raise ValueError(f"--depth must be left out for a model that has its own, got {depth}")
    from relaymodel.networks.huggingface import load

    dtype = dtype or "float32"
    if untrained:
        network = load(model, untrained=True, seed=seed, dtype=dtype)
        if network.context is not None and network.context < length:
            network = load(model, untrained=True, seed=seed, dtype=dtype, context=length)
        return network
    return load(model, dtype=dtype)


def _pairs(
    network: "Network", a: Path | None, b: Path | None, source: str, count: int, P: int, steps: int, seed: int
) -> "Pairs":
    """Return the texts: drawn together where no file gives the prompts, otherwise cut from the files in turn."""
    from relaymodel.networks.protocol import Generated, Pairs, RandomTokens, draw_pairs

    file = source not in ("random", "generated", "english")
    if a is None or b is None:
        text = None if source == "random" else _text(source if file else "english")
        drawn = draw_pairs(
            network, pairs=count, prompt=P, steps=2 if source == "generated" else steps, text=text, seed=seed
        )
        if source != "generated":
            return drawn
        return Pairs(drawn.prompt_a, drawn.prompt_b, Generated(steps, seed), f"generated, seed {seed}; prompts english")
    one, other = _cut(network, a, count, P, "--prompt-a"), _cut(network, b, count, P, "--prompt-b")
    if source == "random":
        return Pairs(one, other, RandomTokens(steps, seed), f"random tokens, seed {seed}")
    if source == "generated":
        return Pairs(one, other, Generated(steps, seed), f"generated after prompt A, seed {seed}")
    if not file:
        drawn = draw_pairs(network, pairs=count, prompt=P, steps=steps, text=_text("english"), seed=seed)
        return Pairs(one, other, drawn.continuation, "english")
    return Pairs(one, other, _cut(network, Path(source), count, steps, "--continuation"), Path(source).name)


def _cut(network: "Network", path: Path, count: int, length: int, option: str) -> Any:
    """Return the first `count` stretches of a file, `length` tokens each."""
    import numpy as np

    ids = network.encode(_text(str(path)))
    if len(ids) < count * length:
        raise ValueError(
            f"{option} must have at least {count} x {length} = {count * length} tokens, {path} has {len(ids)}; "
            "lower --pairs, --prompt or --t-max"
        )
    return np.array(ids[: count * length]).reshape(count, length)


def _text(source: str) -> str:
    """Return the text of a file, or English: the documentation that comes with Python."""
    if source != "english":
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(
                f"--continuation must be random, generated, english or a text file, and there is none at {source}"
            )
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be UTF-8 text: {error}") from None
    from relaymodel.networks.texts import english

    return english()


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


def _draw(measured: "Measurement", metric: str, start: float | None) -> "Figure":
    from relaymodel.plotting import panels, plot_layer_exponents, plot_measurement

    layers = [layer for layer in measured.layers if layer]
    step = -(-len(layers) // SHOWN)
    figure = panels(2)
    plot_measurement(measured, layers[::-1][::step][::-1], metric=metric, ax=figure.axes[0])
    plot_layer_exponents({"_": measured}, metric=metric, t_min=start, ax=figure.axes[1])
    return figure


@contextmanager
def _warnings() -> Iterator[None]:
    """Print warnings as one line each on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(item.message) for item in caught if item.category is UserWarning):
        print(f"relaymodel: warning: {' '.join(message.split())}", file=sys.stderr)
