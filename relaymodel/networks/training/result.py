"""What came of a training: exponents of every arm, seed, checkpoint and layer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel import files
from relaymodel.checks import choice, show
from relaymodel.display import figure, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaymodel.networks.huggingface import HuggingFaceNetwork

Array = NDArray[np.float64]

PLAIN, TRAINED, ADDED, REMOVED = ARMS = (
    "plain",
    "bias in training",
    "bias at measurement",
    "bias in training only",
)
"""No bias at all; bias in training and measurement; bias in the measurement only; bias in training, and then not."""

TRAININGS = {"plain": (PLAIN, ADDED), "bias": (TRAINED, REMOVED)}
"""Which arms share a training."""

CONFIGURATION, ALPHA_FILE, TEXT = "configuration.json", "alpha.csv", "text.txt"


@dataclass(frozen=True)
class Row:
    """The exponent of one layer at one checkpoint, with its standard error over pairs and its window of t.

    `loss` is the mean of the updates since the checkpoint before (None at step 0), `held_out` that on the held-out
    text; nats per token, under the bias of the training.
    """

    arm: str
    seed: int
    step: int
    layer: int
    alpha: float
    stderr: float
    from_t: int
    to_t: int
    loss: float | None
    held_out: float

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Row:
        """Return the row that a line of `alpha.csv` writes out; `KeyError` or `ValueError` for any other line."""
        if texts["arm"] not in ARMS:
            raise ValueError(texts["arm"])
        values: dict[str, Any] = {name: int(texts[name]) for name in ("seed", "step", "layer", "from_t", "to_t")}
        values |= {name: float(texts[name]) for name in ("alpha", "stderr", "held_out")}
        return cls(arm=texts["arm"], loss=float(texts["loss"]) if texts["loss"] else None, **values)


ALPHA_COLUMNS = tuple(field.name for field in fields(Row))


@dataclass(frozen=True, eq=False)
class Progression:
    """The exponent of one arm at one layer while the network learns.

    Attributes
    ----------
    steps, alpha, stderr
        Shape (S,): training steps, mean over seeds, and its standard error over seeds; over pairs if there is one seed.
    each
        Shape (seeds, S).
    arm, layer, seeds
        Where it was read.
    """

    steps: NDArray[np.int64]
    alpha: Array
    stderr: Array
    each: Array
    arm: str
    layer: int
    seeds: tuple[int, ...]

    def __repr__(self) -> str:
        first, last = (f"{self.alpha[i]:.3f} ± {self.stderr[i]:.3f} at step {self.steps[i]}" for i in (0, -1))
        return f"Progression({self.arm}, layer {self.layer}, {len(self.seeds)} seeds: {first}, {last})"


@dataclass(frozen=True, eq=False)
class Training:
    """What `train` found; `read` takes it from its folder, or from a copy of `configuration.json` and `alpha.csv`.

    Attributes
    ----------
    folder
        Where it is kept.
    configuration
        The recipe, the bias, the arms, the seeds, the text, the machine.
    rows
        Every exponent: arm, seed, checkpoint, layer.
    """

    folder: Path
    configuration: Mapping[str, Any]
    rows: tuple[Row, ...]

    @classmethod
    def read(cls, folder: files.PathLike) -> Training:
        """Read what `train` wrote.

        Raises `FileNotFoundError` or `ValueError`, with what is missing, for a folder of another kind.
        """
        path = Path(folder)
        for name in (CONFIGURATION, ALPHA_FILE):
            if not (path / name).is_file():
                raise FileNotFoundError(f"{path} must be a folder that relaymodel train wrote, and it has no {name}")
        configuration = files.read_json(path / CONFIGURATION)
        found = files.read_table(path / ALPHA_FILE, ", ".join(ALPHA_COLUMNS))
        rows = []
        for number, texts in found:
            try:
                rows.append(Row.parse(dict(zip(found.names, texts, strict=True))))
            except (KeyError, ValueError):
                raise found.error(
                    number, f"the columns must be {', '.join(ALPHA_COLUMNS)}, got {show(found.separator.join(texts))}"
                ) from None
        return cls(path, configuration, tuple(rows))

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that were measured."""
        return tuple(arm for arm in ARMS if any(row.arm == arm for row in self.rows))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were trained."""
        return tuple(sorted({row.seed for row in self.rows}))

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that were measured."""
        return tuple(sorted({row.layer for row in self.rows}))

    @property
    def layer(self) -> int:
        """The layer that is shown unless another is asked for: the last but one."""
        return max(1, self.layers[-1] - 1)

    def alpha(self, arm: str, *, layer: int | None = None) -> Progression:
        """Return the exponent against steps: mean and standard error over those seeds that have it.

        Steps that not every seed has reached are left out, so that all means are over the same seeds.
        """
        choice("arm", arm, self.arms)
        where = self.layer if layer is None else layer
        if where not in self.layers:
            raise ValueError(f"layer must be one of those measured, {', '.join(map(str, self.layers))}, got {layer!r}")
        rows = {(row.seed, row.step): row for row in self.rows if row.arm == arm and row.layer == where}
        seeds = tuple(sorted({seed for seed, _ in rows}))
        steps = [step for step in sorted({step for _, step in rows}) if all((seed, step) in rows for seed in seeds)]
        each = np.array([[rows[seed, step].alpha for step in steps] for seed in seeds])
        if len(seeds) > 1:
            error = each.std(axis=0, ddof=1) / np.sqrt(len(seeds))
        else:
            error = np.array([rows[seeds[0], step].stderr for step in steps])
        return Progression(np.array(steps), each.mean(axis=0), error, each, arm, where, seeds)

    def network(self, arm: str, seed: int, step: int) -> HuggingFaceNetwork:
        """Return the network of a checkpoint in float64, as it was measured; `measure` is told the bias anew.

        Raises `FileNotFoundError` if its weights are not in the folder.
        """
        from relaymodel.networks.huggingface import load
        from relaymodel.networks.training.recipe import BYTES, Recipe
        from relaymodel.networks.training.text import Bytes, split

        kind = next(name for name, arms in TRAININGS.items() if choice("arm", arm, ARMS) in arms)
        weights = self.folder / f"{kind}-seed-{seed}" / "weights" / f"step-{step:06d}"
        network = load(weights, dtype="float64")
        recipe = Recipe(**self.configuration["recipe"])
        if recipe.vocabulary == BYTES:
            network.tokenizer = Bytes()
        else:
            network.tokenizer = split((self.folder / TEXT).read_text(encoding="utf-8"), recipe).tokenizer
        return network

    def __repr__(self) -> str:
        shape = f"{len(self.arms)} arms, {len(self.seeds)} seeds, layers {self.layers[0]}..{self.layers[-1]}"
        return f"Training({shape}, in {self.folder})"

    def _repr_html_(self) -> str:
        found = [self.alpha(arm) for arm in self.arms]
        rows = []
        for step in sorted({int(step) for one in found for step in one.steps}):
            at = [np.flatnonzero(one.steps == step) for one in found]
            cells = [figure(o.alpha[i[0]], o.stderr[i[0]]) if i.size else "" for o, i in zip(found, at, strict=True)]
            rows.append((step, *cells))
        caption = f"exponent α at layer {self.layer}, {len(self.seeds)} seeds"
        return table(caption, rows, ("step", *self.arms))


def write(path: Path, rows: Sequence[Row], facts: Mapping[str, str]) -> None:
    """Write `alpha.csv`."""
    columns = {name: [getattr(row, name) for row in rows] for name in ALPHA_COLUMNS}
    files.write_table(path, columns, facts, overwrite=True)
