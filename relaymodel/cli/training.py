"""The command that trains small networks and measures them while they learn."""

import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.checks import show
from relaymodel.cli.inputs import ENGLISH, read_text
from relaymodel.cli.numbers import number, whole
from relaymodel.cli.options import Json
from relaymodel.cli.output import print_json, print_table

if TYPE_CHECKING:
    from relaymodel.networks.training import Recipe, Training

FIGURE = "training.png"


def train(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A text file, or english: the documentation that comes with Python.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for weights, curves, exponents, figure.")],
    arms: Annotated[
        bool,
        typer.Option(
            "--arms",
            help="Train plainly and with the bias; measure the plain training with and without it.",
        ),
    ] = False,
    bias: Annotated[
        str | None,
        typer.Option(
            "--bias",
            metavar="B",
            help="Strength of the bias B log(1+t/P) on the prompt's keys in training.  [default: none; 1 with --arms]",
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option("--share", metavar="C", help="Hold the prompt's share of uniform attention at C instead."),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="N", help="Trainings, one for each seed.")] = "1",
    seed: Annotated[str, typer.Option("--seed", metavar="S", help="The first seed.")] = "0",
    preset: Annotated[
        str,
        typer.Option("--preset", metavar="NAME", help="standard: five minutes a training.  quick: seconds."),
    ] = "standard",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change the recipe, any number of times: depth, width, heads; context, prompt (bytes of a text, and "
            "of these the prompt); steps, batch, rate (updates, texts for each, largest learning rate); checkpoints, "
            "pairs (measurements after step 0, pairs of prompts in each); threads.",
        ),
    ] = None,
    jobs: Annotated[str, typer.Option("--jobs", metavar="N", help="Trainings at the same time, a process each.")] = "2",
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="L", help="Layer to show.  [default: the last but one]")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted experiment in DIR.")] = False,
    json: Json = False,
) -> None:
    """Train a small GPT, and measure at checkpoints how it forgets its prompt.

    The network's tokens are bytes, and the last tenth of the text is held out for the measurements.  With a bias, the
    first P bytes of every training text are the prompt, and its keys are favoured more and more behind it.
    """
    from relaymodel.networks.training import train
    from relaymodel.networks.training.recipe import preset as named
    from relaymodel.simulation import ConstantShare, PromptBias

    if bias is not None and share is not None:
        raise ValueError(f"--bias must not be given together with --share, got {bias} and {share}; choose one")
    chosen: PromptBias | ConstantShare | None = None
    if share is not None:
        chosen = ConstantShare(number("--share", share))
    elif bias is not None and (number("--bias", bias) or arms):
        chosen = PromptBias(number("--bias", bias))
    recipe = replace(named(preset), **_changes(settings or []))
    shown = recipe.layer if layer is None else whole("--layer", layer, most=recipe.depth)
    result = train(
        read_text(text, "TEXT", "english"),
        out,
        recipe=recipe,
        bias=chosen,
        arms=arms,
        seeds=whole("--seeds", seeds),
        seed=whole("--seed", seed, least=0),
        name=text if text == ENGLISH else Path(text).name,
        resume=resume,
        jobs=whole("--jobs", jobs),
        tell=None if json else _teller(recipe, shown),
        progress=True,
    )
    _draw(result, shown, out / FIGURE)
    if json:
        exponents = _columns(result, shown)
        print_json({"folder": str(out), "layer": shown, "configuration": dict(result.configuration), **exponents})
        return
    for arm in result.arms:
        found = result.alpha(arm, layer=shown)
        print(f"\n{arm}, layer {shown}, {len(found.seeds)} seeds")
        columns = {"step": found.steps.tolist(), "alpha": found.alpha.tolist(), "stderr": found.stderr.tolist()}
        print_table(columns, {"alpha": 4, "stderr": 2})


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
        option = f"--set {name}"
        changed[name] = float(number(option, value)) if name == "rate" else whole(option, value)
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
        print(f"{over}{place}: {loss}held out {record['held_out']:.3f}; alpha {', '.join(found)}", flush=True)

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
    print(f"wrote {save(plot_training(result, layer=layer, arms=arms), path, overwrite=True)}", file=sys.stderr)
