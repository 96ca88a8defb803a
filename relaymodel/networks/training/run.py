"""One training: a network, its optimiser and its records, in a folder that it goes on from when it was interrupted."""

from __future__ import annotations

import copy
import math
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel import files
from relaymodel.checks import show
from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.huggingface.bias import bias_hook
from relaymodel.networks.huggingface.build import find_blocks
from relaymodel.networks.huggingface.libraries import first_line, heavy, quiet, within_memory
from relaymodel.networks.protocol import draw_pairs, measure
from relaymodel.networks.protocol.runs import bias_array
from relaymodel.networks.training.recipe import BETAS, CLIP, WEIGHT_DECAY, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from relaymodel.networks.protocol import Measurement
    from relaymodel.networks.training.text import Corpus
    from relaymodel.simulation import ConstantShare, PromptBias

SAVE_EVERY = 100
"""Updates after which the state is saved, besides at every measurement."""

Record = dict[str, Any]
RECORD = {"step", "loss", "held_out", "alpha"}


@dataclass(eq=False)
class Run:
    """One training of one seed.

    Parameters
    ----------
    folder
        Where it keeps `weights/step-N/` (in transformers' format), `curves/`, `records.json`, and, until it is done,
        `state.pt`.
    corpus, recipe, seed
        What is trained on, and how.
    bias
        On the prompt's keys, throughout the training; None: no bias.
    measured_with
        {arm: bias}: how each checkpoint is measured.
    provenance
        Facts for the files of curves.
    """

    folder: Path
    corpus: Corpus
    recipe: Recipe
    seed: int
    bias: PromptBias | ConstantShare | None
    measured_with: dict[str, PromptBias | ConstantShare | None]
    provenance: dict[str, str]

    @property
    def records(self) -> list[Record]:
        """What was measured so far, a record for each checkpoint."""
        path = self.folder / "records.json"
        if not path.exists():
            return []
        found: list[Record] = files.read_json(path)
        if not isinstance(found, list) or not all(isinstance(one, dict) and set(one) == RECORD for one in found):
            raise ValueError(f"{path} must hold what a training measured, got {show(found)}; delete {self.folder}")
        return found

    def train(self, tell: Callable[[Record], object], report: Callable[[int], object]) -> None:
        """Train to the end, from where the folder says; `tell` of each measurement, `report` each update."""
        records = self.records
        if records and records[-1]["step"] == self.recipe.steps:
            (self.folder / "state.pt").unlink(missing_ok=True)
            report(self.recipe.steps)
            return
        torch = heavy("torch")
        for name in ("weights", "curves"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        with (
            quiet(),
            within_memory("recipe"),
            _threads(self.recipe.threads),
            torch.random.fork_rng(devices=[]),
            torch.enable_grad(),
        ):
            torch.manual_seed(self.seed)
            self.model = build(self.recipe)
            self.optimizer = _optimizer(self.model)
            step, losses = self._load()
            # what was measured after the state was saved is measured again, with the same result
            records = [record for record in records if record["step"] <= step]
            while True:
                if step in self.recipe.measured and (not records or records[-1]["step"] < step):
                    records.append(self._measure(step, losses))
                    losses = []
                    files.write_json(self.folder / "records.json", records, overwrite=True)
                    tell(records[-1])
                    if step < self.recipe.steps:
                        self._save(step, losses)
                elif step % SAVE_EVERY == 0:
                    self._save(step, losses)
                report(step)
                if step == self.recipe.steps:
                    break
                losses.append(self._update(step))
                step += 1
        (self.folder / "state.pt").unlink(missing_ok=True)

    def _update(self, step: int) -> float:
        """Take one step down the gradient and return the loss before it."""
        torch = heavy("torch")
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate(step)
        loss = self.loss(self.corpus.batch(self.recipe, self.seed, step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        value = float(loss.detach())
        if not np.isfinite(value):
            raise ValueError(f"rate must be lower: the loss at step {step} is {value}, got {self.recipe.rate:g}")
        return value

    def loss(self, texts: NDArray[np.int64]) -> Any:
        """Return the mean cross entropy, nats per token, of texts (B, context), under the bias of the training."""
        torch = heavy("torch")
        ids = torch.from_numpy(texts)
        with ExitStack() as hooks:
            if self.bias is not None:
                # made anew each time, since a hook keeps the masks it has seen
                hook = bias_hook(bias_array(self.bias, self.recipe.prompt, texts.shape[1]), texts.shape[1])
                for block in find_blocks(self.model, self.recipe.depth):
                    hooks.callback(block.register_forward_pre_hook(hook, with_kwargs=True).remove)
            logits = self.model(input_ids=ids, use_cache=False).logits
        return torch.nn.functional.cross_entropy(
            logits[:, :-1].reshape(-1, self.recipe.vocabulary), ids[:, 1:].reshape(-1)
        )

    def _measure(self, step: int, losses: list[float]) -> Record:
        """Measure and save the network as it is; return loss and exponents."""
        torch = heavy("torch")
        # in float64: once attention is local, a prompt that is far away changes less than float32 can tell
        model = copy.deepcopy(self.model).double()
        network = HuggingFaceNetwork(model, self.corpus.tokenizer, self.provenance | {"step": str(step)})
        with torch.no_grad():
            held_out = float(self.loss(self.corpus.windows(self.recipe)))
        record: Record = {
            "step": step,
            "loss": float(np.mean(losses)) if losses else None,
            "held_out": held_out,
            "alpha": {},
        }
        target = self.folder / "weights" / f"step-{step:06d}"
        with files.folder(target, overwrite=True) as weights, _writing(target):
            self.model.save_pretrained(weights)
        for arm, bias in self.measured_with.items():
            measured = measure_checkpoint(network, self.corpus, self.recipe, self.seed, bias)
            name = f"{arm.replace(' ', '-')}-{step:06d}.csv"
            measured.to_csv(self.folder / "curves" / name, overwrite=True)
            fits = {layer: measured.alpha(layer) for layer in measured.layers}
            record["alpha"][arm] = [
                [layer, fit.value, fit.noise_stderr, *map(int, fit.window)] for layer, fit in fits.items()
            ]
        return record

    def _save(self, step: int, losses: list[float]) -> None:
        torch = heavy("torch")
        state = {"step": step, "losses": losses}
        state |= {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        target = self.folder / "state.pt"
        with _writing(target):
            files.write(target, lambda path: torch.save(state, path), overwrite=True)

    def _load(self) -> tuple[int, list[float]]:
        """Take up the saved state, if there is one; return its step and the losses since the last measurement."""
        path = self.folder / "state.pt"
        if not path.exists():
            return 0, []
        try:
            state = heavy("torch").load(path, weights_only=True)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            return int(state["step"]), list(state["losses"])
        except Exception as error:  # whatever zipfile, pickle and torch make of damaged bytes
            raise ValueError(
                f"{path} must be the state of this training, it is damaged or another's ({first_line(error)}); "
                f"delete {self.folder} to train anew"
            ) from None


def build(recipe: Recipe) -> Any:
    """Return the untrained network of a recipe, its weights drawn from torch's own generator.

    Their standard deviation is GPT-2's own, 0.02 at width 768, scaled so that a matrix has the same gain at any width:
    with 0.02 at width 64 layers would hardly relay, and the exponents of an untrained network be those of one layer.
    """
    transformers = heavy("transformers")
    shared = {
        "vocab_size": recipe.vocabulary,
        "initializer_range": 0.02 * math.sqrt(768 / recipe.width),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if recipe.positions == "rotary":
        config = transformers.LlamaConfig(
            hidden_size=recipe.width,
            intermediate_size=8 * recipe.width // 3,
            num_hidden_layers=recipe.depth,
            num_attention_heads=recipe.heads,
            max_position_embeddings=recipe.context,
            tie_word_embeddings=True,
            **shared,
        )
        return transformers.LlamaForCausalLM(config)
    config = transformers.GPT2Config(
        n_positions=recipe.context,
        n_embd=recipe.width,
        n_layer=recipe.depth,
        n_head=recipe.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        **shared,
    )
    return transformers.GPT2LMHeadModel(config)


def measure_checkpoint(
    network: HuggingFaceNetwork,
    corpus: Corpus,
    recipe: Recipe,
    seed: int,
    bias: PromptBias | ConstantShare | None,
) -> Measurement:
    """Return the measurement that a training makes of its network: pairs from the held-out text, dealt by the seed."""
    pairs = draw_pairs(
        network,
        pairs=recipe.pairs,
        prompt=recipe.prompt,
        steps=recipe.continuation,
        text=corpus.held_out,
        seed=seed,
    )
    facts = {"continuation": f"held out, {pairs.provenance['continuation']}"}
    return measure(network, pairs, bias=bias, provenance=facts)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Make an `OSError`, with the name of the file, of what torch and safetensors raise when a disk is full."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"cannot write {target}: {first_line(error)}") from error


def _optimizer(model: Any) -> Any:
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    return heavy("torch").optim.AdamW(groups, betas=BETAS)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch use so many threads, within the block."""
    torch = heavy("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
