"""The experiment: trainings of several seeds, with and without the bias, in one folder."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import relaymodel
from relaymodel import files
from relaymodel.checks import positive_integer, show
from relaymodel.memory import demand_memory
from relaymodel.networks.huggingface.libraries import heavy, torch_seed
from relaymodel.networks.training.jobs import Key, train_all
from relaymodel.networks.training.recipe import Recipe
from relaymodel.networks.training.result import (
    ADDED,
    ALPHA_FILE,
    ARMS,
    CONFIGURATION,
    PLAIN,
    TEXT,
    TRAINED,
    TRAININGS,
    Row,
    Training,
    write,
)
from relaymodel.networks.training.run import Record, Run
from relaymodel.networks.training.text import split
from relaymodel.progress import reporter
from relaymodel.simulation import ConstantShare, PromptBias

try:
    import fcntl
except ImportError:  # Windows: nothing is locked
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from relaymodel.progress import Report


def train(
    text: str,
    out: files.PathLike,
    *,
    recipe: Recipe | None = None,
    bias: PromptBias | ConstantShare | None = None,
    arms: bool = False,
    seeds: int = 1,
    seed: int = 0,
    name: str = "text",
    resume: bool = False,
    jobs: int = 1,
    tell: Callable[[str, int, Record], object] | None = None,
    progress: bool | Report = False,
) -> Training:
    r"""Train a small GPT on a text, and measure at checkpoints how it forgets its prompt.

    With a bias the first P tokens of every training text are its prompt, and $b_t$ is added to the logits of their keys
    for the queries behind them, in every layer, from the first step on (THEORY section 7).  Each checkpoint is
    measured under the bias of its training and also without it; a plain training that is one of three arms, without
    and with it.  Trainings of one seed start from the same weights and see the same texts.

    Parameters
    ----------
    text
        The last tenth is held out, for the measurements.
    out
        A folder that must not exist, or be empty.  It receives `configuration.json`, `text.txt`, `alpha.csv` (see
        `Row`), and for each training a folder with `curves/` (CSV: all layers of a checkpoint), `weights/` (in
        transformers' format) and `records.json`; all of them at each checkpoint.
    recipe
        The network, the optimiser, the measurements; None: the standard one.
    bias
        On the prompt's keys, in training; None: none, or PromptBias(1) if `arms` is set.
    arms
        Train plainly and with the bias; measure the plain training with and without it.
    seeds, seed
        How many, and the first: one training (with `arms` two) for each, of initial weights and texts.
    name
        What to call the text in the files.
    resume
        Go on with what `out` holds, from where it was interrupted: the result is the same to the last bit, on the same
        machine.
    jobs
        How many trainings run at the same time, a process each; the result does not depend on it.  Above 1, a script
        must guard its main part by `if __name__ == "__main__"`.
    tell
        Called as tell(training, seed, record) after each measurement, with what `records.json` keeps of it.
    progress
        True shows a bar on a terminal; a function is called with (steps done, steps in total).

    Returns
    -------
    Training
        All exponents.

    Raises
    ------
    ImportError
        Without torch and transformers.
    OSError
        If `out` is occupied (`FileExistsError`) or cannot be written.
    ValueError, TypeError
        For a text that is too short, a strength of 0, another experiment's folder.

    Examples
    --------
    >>> from relaymodel.networks.texts import english
    >>> train(english(), "grown", arms=True, seeds=3)  # doctest: +SKIP
    Training(4 arms, 3 seeds, layers 1..6, in grown)
    """
    recipe = Recipe() if recipe is None else recipe
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe must be a Recipe, got {show(recipe)}")
    if bias is None and arms:
        bias = PromptBias(1)
    if bias is not None and not isinstance(bias, (PromptBias, ConstantShare)):
        raise TypeError(f"bias must be a PromptBias, a ConstantShare or None, got {show(bias)}")
    if isinstance(bias, PromptBias) and not bias.strength and not bias.offset:
        raise ValueError("bias must have a strength other than 0; leave it out for a plain training")
    first, count = torch_seed(seed), positive_integer("seeds", seeds)
    torch_seed(first + count - 1)
    grown = range(first, first + count)
    jobs = positive_integer("jobs", jobs)
    corpus = split(text, recipe)
    chosen = ("plain", "bias") if arms else ("plain",) if bias is None else ("bias",)
    side_by_side = min(jobs, len(chosen) * len(grown))
    what = "a training of this size" if side_by_side == 1 else f"{side_by_side} at a time of this size"
    demand_memory("recipe (depth, width, context, batch)", side_by_side * recipe.memory, what)
    heavy("torch"), heavy("transformers")
    written = command(name, recipe, bias, arms, grown)
    asked = {
        "recipe": asdict(recipe),
        "bias": None if bias is None else {part: str(value) for part, value in asdict(bias).items()},
        "trainings": list(chosen),
        "seeds": list(grown),
        "text": {
            "name": name,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "training tokens": corpus.training.size,
            "held-out bytes": len(corpus.held_out.encode()),
        },
        "command": written,
    }
    folder = _open(Path(out), asked, text, resume=resume)
    facts = {"command": written, "text": name, "bias of the arms": repr(bias)}
    runs = {}
    for seed in grown:
        for training in chosen:
            measured_arms = (PLAIN,) if bias is None else TRAININGS[training]
            how = {arm: bias if arm in (TRAINED, ADDED) else None for arm in measured_arms}
            place = folder / f"{training}-seed-{seed}"
            known = facts | {"training": training, "seed": str(seed)}
            throughout = bias if training == "bias" else None
            runs[training, seed] = Run(place, corpus, recipe, seed, throughout, how, known)
    report, done = reporter(progress), dict.fromkeys(runs, 0)

    def measured(key: Key, record: Record) -> None:
        write(folder / ALPHA_FILE, _rows(runs), facts)
        if tell is not None:
            tell(*key, record)

    def advanced(key: Key, step: int) -> None:
        done[key] = step
        report(sum(done.values()), recipe.steps * len(runs))

    with _alone(folder):
        train_all(runs, jobs, measured, advanced)
        write(folder / ALPHA_FILE, _rows(runs), facts)
    return Training.read(folder)


def command(name: str, recipe: Recipe, bias: PromptBias | ConstantShare | None, arms: bool, seeds: range) -> str:
    """Return the command that runs the same experiment.

    >>> command("english", Recipe(steps=900), PromptBias(1), True, range(3))
    'relaymodel train english --arms --bias 1 --seeds 3 --set steps=900 --out DIR'
    """
    words = ["relaymodel", "train", name]
    if arms:
        words.append("--arms")
    if isinstance(bias, ConstantShare):
        words += ["--share", str(bias.share)]
    elif bias is not None:
        words += ["--bias", str(bias.strength)]
    words += ["--seeds", str(len(seeds))]
    if seeds.start:
        words += ["--seed", str(seeds.start)]
    words += [*recipe.options(), "--out", "DIR"]
    return shlex.join(words)


def _open(out: Path, asked: dict[str, Any], text: str, *, resume: bool) -> Path:
    """Make the folder of an experiment, or see that it holds the same one."""
    path = out / CONFIGURATION
    if resume and path.exists():
        found = files.read_json(path)
        if not isinstance(found, dict):
            raise ValueError(f"{path} must say what is trained, as relaymodel train writes it, got {show(found)}")
        for key, value in asked.items():
            if found.get(key) != json.loads(json.dumps(value)):
                raise ValueError(
                    f"{out} must hold the same experiment to be resumed, but its {key} is {show(found.get(key))}, "
                    f"got {show(value)}; choose another folder"
                )
        return out
    try:
        files.claim(out)
    except FileExistsError:
        hint = (
            "holds no training to resume"
            if resume
            else "exists already; choose another folder, or go on with it (resume=True, --resume)"
        )
        raise FileExistsError(f"{out} {hint}") from None
    out.mkdir(exist_ok=True)
    # in this order: where there is a configuration, there is a text
    files.write_text(out / TEXT, text)
    versions = {name: heavy(name).__version__ for name in ("torch", "transformers")}
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    made = {"relaymodel": relaymodel.__version__, **versions, **machine}
    files.write_json(path, asked | {"made with": made})
    return out


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder within the block; `BlockingIOError` if another process does, until it ends, however it ends."""
    with (folder / CONFIGURATION).open("rb") as stream:
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BlockingIOError(
                    f"{folder} is being trained by another process; wait until it ends, or choose another folder"
                ) from None
        yield


def _rows(runs: dict[Key, Run]) -> list[Row]:
    """Return what was measured so far, arm by arm."""
    rows = [
        Row(arm, seed, record["step"], layer, alpha, error, low, high, record["loss"], record["held_out"])
        for (_, seed), run in runs.items()
        for record in run.records
        for arm, fits in record["alpha"].items()
        for layer, alpha, error, low, high in fits
    ]
    return sorted(rows, key=lambda row: (ARMS.index(row.arm), row.seed, row.step, row.layer))
