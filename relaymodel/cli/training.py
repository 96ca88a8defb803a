"""The command that trains small networks and measures them while they learn."""

import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from relaymodel.checks import floating, show
from relaymodel.cli.control import BiasOptions
from relaymodel.cli.inputs import ENGLISH, LONGEST_LIST, read_text
from relaymodel.cli.numbers import number, whole
from relaymodel.cli.options import OUTPUT, TRAINING, flag, option
from relaymodel.cli.output import Listing, Printed, folder, say, written

if TYPE_CHECKING:
    from relaymodel.networks.training import Recipe, Training

FIGURE, MOST_SEEDS = "training.png", 10**4  # more would take months


def train(
    text: Annotated[str, option("TEXT", "A text file, or english: the documentation that comes with Python.")],
    /,
    *,
    out: Annotated[Path, option("DIR", "Folder for weights, curves, exponents, figure.", folder, OUTPUT)],
    arms: Annotated[
        bool,
        flag("Train plainly and with the bias; measure the plain training with and without it.", TRAINING),
    ] = False,
    bias: BiasOptions = BiasOptions(),
    preset: Annotated[
        str,
        option(
            "NAME",
            "standard: some ten minutes a training.  units: tokens beyond bytes, rotary positions.  quick: seconds.",
            group=TRAINING,
        ),
    ] = "standard",
    settings: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            metavar="NAME=VALUE",
            help="Change the recipe, any number of times: depth, width, heads; context, prompt (tokens of a text, and "
            "of these the prompt); steps, batch, rate (updates, texts for each, largest learning rate); checkpoints, "
            "pairs (measurements after step 0, pairs of prompts in each); threads; "
            "vocabulary (256 bytes, or more tokens), positions (learned or rotary).",
            negative=(),
            group=TRAINING,
        ),
    ] = None,
    seeds: Annotated[int, option("N", "Trainings, one for each seed.", whole(MOST_SEEDS), TRAINING)] = 1,
    seed: Annotated[int, option("S", "The first seed.", whole(least=0), TRAINING)] = 0,
    jobs: Annotated[int, option("N", "Trainings at the same time, a process each.", whole(), TRAINING)] = 2,
    layer: Annotated[int | None, option("L", "Layer to show.  [default: the last but one]", whole(), OUTPUT)] = None,
    resume: Annotated[bool, flag("Go on with an interrupted experiment in DIR.", OUTPUT)] = False,
    printed: Printed = Printed(),
) -> None:
    """Train a small GPT, and measure at checkpoints how it forgets its prompt.

    The network's tokens are bytes, or longer units of the text (a vocabulary above 256), and the last tenth of the text
    is held out for the measurements.  With a bias, the first P tokens of every training text are the prompt, and its
    keys are favoured more and more behind it. Without --bias the training is plain; with --arms its strength is 1.
    """
    from relaymodel.networks.training import train
    from relaymodel.networks.training.recipe import preset as named
    from relaymodel.simulation import PromptBias

    printed.agree()
    chosen = bias.chosen()
    if isinstance(chosen, PromptBias) and not chosen.strength and not arms:
        chosen = None
    changes = _changes(settings or [])
    try:
        recipe = replace(named(preset), **changes)
    except ValueError as error:
        raise ValueError(f"--set {error}" if changes else str(error)) from None
    if layer is not None and layer > recipe.depth:
        raise ValueError(f"--layer must be at most {recipe.depth}, got {layer}")
    shown = layer or recipe.layer
    result = train(
        read_text(text, "TEXT", "english"),
        out,
        recipe=recipe,
        bias=chosen,
        arms=arms,
        seeds=seeds,
        seed=seed,
        name=text if text == ENGLISH else Path(text).name,
        resume=resume,
        jobs=jobs,
        tell=None if printed.json else _teller(recipe, shown),
        progress=True,
    )
    _draw(result, shown, out / FIGURE)
    columns = _columns(result, shown)
    printed.show(
        {"folder": str(out), "layer": shown, "configuration": dict(result.configuration), **columns},
        [f"\nlayer {shown}\n", Listing(columns, {"alpha": 4, "stderr": 2})],
    )


def _changes(settings: list[str]) -> dict[str, Any]:
    """Return what --set changes.

    >>> _changes(["steps=1e3", "rate=0.001"])
    {'steps': 1000, 'rate': 0.001}
    """
    from relaymodel.networks.training import Recipe

    names = [field.name for field in fields(Recipe)]
    changed: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in names:
            raise ValueError(f"--set must be NAME=VALUE with one of the names {', '.join(names)}, got {show(setting)}")
        option_typed = f"--set {name}"
        if name == "positions":
            changed[name] = value
        else:
            changed[name] = (
                floating(option_typed, number(option_typed, value))
                if name == "rate"
                else whole(LONGEST_LIST)(option_typed, value)
            )
    return changed


def _teller(recipe: "Recipe", layer: int) -> Callable[[str, int, dict[str, Any]], None]:
    """Return what prints a line after each measurement."""

    def tell(training: str, seed: int, record: dict[str, Any]) -> None:
        loss = "" if record["loss"] is None else f"loss {record['loss']:.3f}, "
        found = []
        for arm, fits in record["alpha"].items():
            alpha, error = next(fit[1:3] for fit in fits if fit[0] == layer)
            found.append(f"{arm} {alpha:.3f} ± {error:.3f}")
        place = f"{training}, seed {seed}, step {record['step']} of {recipe.steps}"
        over = "\r" * sys.stderr.isatty()
        say(f"{over}{place}: {loss}held out {record['held_out']:.3f}; alpha {', '.join(found)}", flush=True)

    return tell


def _columns(result: "Training", layer: int) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in ("arm", "seeds", "step", "alpha", "stderr")}
    for arm in result.arms:
        one = result.alpha(arm, layer=layer)
        columns["arm"] += [arm] * len(one.steps)
        columns["seeds"] += [len(one.seeds)] * len(one.steps)
        columns["step"] += one.steps.tolist()
        columns["alpha"] += one.alpha.tolist()
        columns["stderr"] += one.stderr.tolist()
    return columns


def _draw(result: "Training", layer: int, path: Path) -> None:
    from relaymodel.plotting import plot_training, save

    arms = None if len(result.arms) > 2 else result.arms
    written(save(plot_training(result, layer=layer, arms=arms), path, overwrite=True))
