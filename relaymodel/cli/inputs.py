"""What the commands on networks share: the options that name a model and its texts, and what these name."""

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from relaymodel import files
from relaymodel.checks import Number, one_line
from relaymodel.cli.numbers import number, time, whole
from relaymodel.cli.options import FIT, MAX_DEPTH, NETWORK, flag, option, options
from relaymodel.cli.output import filename, say
from relaymodel.memory import demand_memory

if TYPE_CHECKING:
    from relaymodel.networks.protocol import Network, Pairs
    from relaymodel.simulation import PromptBias

NUMPY = "untrained-numpy"
ENGLISH = "english"
NETWORK_WIDTH, HEADS = 256, 8  # of the NumPy network: seconds a pair, and wide enough for its exponents to be typical
SPEED = 5e9  # floating-point operations a second, about: single rows and exponentials are among them
MUCH = 4e9  # bytes; less need not be said
PATIENCE = 30.0  # seconds of work about which nothing need be said
TIME_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))  # seconds
LONGEST_LIST = 10**6  # beyond, memory ends before patience

Model = Annotated[
    str,
    option(
        "MODEL",
        "untrained-numpy (random weights, NumPy alone), or a causal model of transformers: a folder, a GGUF file, a "
        "hub name; with --untrained also a config.json.",
    ),
]
Start = Annotated[float | None, option("T", "Start of the fit.  [default: 16, if the curve allows]", time, FIT)]


@options(NETWORK)
class Loading:
    """How a model of transformers is run."""

    dtype: Annotated[str | None, option("NAME", "float32, float64, bfloat16 or float16.  [default: float32]")] = None
    device: Annotated[str | None, option("NAME", "Where a model runs, as torch names it.  [default: cpu]")] = None
    chunk: Annotated[
        int | None,
        option("N", "Tokens that are run at once, for long texts.  [default: all]", whole(LONGEST_LIST)),
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """What was asked for, as arguments of `load`."""
        return {name: value for name, value in vars(self).items() if value is not None}


@options(NETWORK)
class NetworkOptions:
    """A network, two prompts and a continuation."""

    untrained: Annotated[bool, flag("Its architecture, random weights.")] = False
    depth: Annotated[int | None, option("L", "Layers of untrained-numpy.  [default: 12]", whole(MAX_DEPTH))] = None
    prompt_a: Annotated[Path | None, option("FILE", "Text of prompt A.", filename)] = None
    prompt_b: Annotated[Path | None, option("FILE", "Text of prompt B.", filename)] = None
    continuation: Annotated[
        str | None,
        option(
            "FILE|random|generated|english",
            "A text file; random tokens; written by the model after prompt A; or Python's documentation.  "
            "[default: english, for untrained-numpy random]",
            lambda name, text: text if text == ENGLISH else str(filename(name, text)),
        ),
    ] = None
    prompt: Annotated[
        int | None,
        option("P", "Tokens of each prompt.  [default: 64, to certify 16]", whole(LONGEST_LIST)),
    ] = None
    t_max: Annotated[
        int | None,
        option("T", "Tokens of the continuation.  [default: 2048, to certify 256]", whole(LONGEST_LIST, least=2)),
    ] = None
    bias: Annotated[Number, option("B", "Add B log(1 + t/P) to the logits of the prompt's keys.", number)] = 0
    seed: Annotated[int, option("S", "Of random weights, tokens, pieces.", whole(least=0))] = 0

    def checked(self, model: str, *, prompt: int, t_max: int) -> "NetworkOptions":
        """Return the options with a command's defaults in their places, the files looked at."""
        if (self.prompt_a is None) != (self.prompt_b is None):
            raise ValueError("--prompt-a and --prompt-b must be given together, or neither of them")
        for name, path in (("--prompt-a", self.prompt_a), ("--prompt-b", self.prompt_b)):
            if path is not None and path != files.STDIO and not path.is_file():
                raise FileNotFoundError(f"{name} must be a text file, and there is none at {path}")
        if sum(str(path) == "-" for path in (self.prompt_a, self.prompt_b, self.continuation)) > 1:
            raise ValueError("- must stand for one text only: standard input can be read once")
        if self.depth is not None and model != NUMPY:
            raise ValueError(f"--depth must be left out for a model that has its own, got {self.depth}")
        continuation = self.continuation or ("random" if model == NUMPY else ENGLISH)
        return replace(self, continuation=continuation, prompt=self.prompt or prompt, t_max=self.t_max or t_max)

    @property
    def log_bias(self) -> "PromptBias | None":
        """The bias, if there is one."""
        from relaymodel.simulation import PromptBias

        return PromptBias(self.bias) if self.bias else None

    def network(self, model: str, loading: Loading = Loading()) -> "Network":
        """Return the network that MODEL names, with room for prompt and continuation."""
        length = (self.prompt or 0) + (self.t_max or 0)
        if model == NUMPY:
            import numpy as np

            from relaymodel.networks.transformer import Architecture, Transformer

            for name, value in loading.given.items():
                if value != "float64":
                    rule = "which computes in float64 on the CPU, in one pass"
                    raise ValueError(f"--{name} must be left out for {NUMPY}, {rule}, got {value}")
            shape = Architecture(self.depth or 12, NETWORK_WIDTH, HEADS, vocabulary=256, context=length)
            need = 8 * shape.parameters + shape.memory(length)
            demand_memory("--t-max, --prompt or --depth", need, f"a network of {shape.depth} layers on {length} tokens")
            if need > MUCH:
                say(f"relaymodel: this takes about {need / 1e9:.0f} GB of memory", file=sys.stderr)
            return Transformer.random(shape, np.random.default_rng(self.seed))
        from relaymodel.networks.huggingface import load

        if not self.untrained:
            return load(model, **loading.given)
        network = load(model, untrained=True, seed=self.seed, **loading.given)
        if network.context is not None and network.context < length:
            network = load(model, untrained=True, seed=self.seed, context=length, **loading.given)
        return network

    def pairs(self, network: "Network", count: int) -> "Pairs":
        """Return the texts: drawn together where no file gives the prompts, otherwise cut from the files in turn."""
        from relaymodel.networks.protocol import Generated, Pairs, RandomTokens, draw_pairs

        source, P, steps, seed = self.continuation or "", self.prompt or 0, self.t_max or 0, self.seed
        named = source not in ("random", "generated", ENGLISH)
        if self.prompt_a is None or self.prompt_b is None:
            text = None if source == "random" else _text(source if named else ENGLISH)
            length = 2 if source == "generated" else steps
            drawn = draw_pairs(network, pairs=count, prompt=P, steps=length, text=text, seed=seed)
            if source != "generated":
                return drawn
            facts = {"continuation": f"generated, seed {seed}; prompts english"}
            return replace(drawn, continuation=Generated(steps, seed), provenance=facts)
        one = _cut(network, self.prompt_a, count, P, "--prompt-a")
        other = _cut(network, self.prompt_b, count, P, "--prompt-b")
        if source in ("random", "generated"):
            return Pairs(one, other, (RandomTokens if source == "random" else Generated)(steps, seed))
        if not named:
            drawn = draw_pairs(network, pairs=count, prompt=P, steps=steps, text=_text(ENGLISH), seed=seed)
            return replace(drawn, prompt_a=one, prompt_b=other, provenance={"continuation": ENGLISH})
        after = _cut(network, Path(source), count, steps, "--continuation")
        return Pairs(one, other, after, provenance={"continuation": Path(source).name})


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
    return read_text(source, "--continuation", "random, generated, english")


def read_text(source: str, option: str, choices: str) -> str:
    """Return the text of a file, or English: the documentation that comes with Python."""
    if source == ENGLISH:
        from relaymodel.networks.texts import english

        return english()
    path = Path(source)
    if path != files.STDIO and not path.is_file():
        raise FileNotFoundError(f"{option} must be {choices} or a text file, and there is none at {source}")
    return files.read_text(path)


def facts(known: Mapping[str, str]) -> list[str]:
    """Return a line for each fact, and an empty one."""
    return [*(f"{key + ':':14} {value}" for key, value in known.items()), ""]


def announce(seconds: float) -> None:
    """Say on stderr how long work will take, if that is long; NumPy does about `SPEED` operations a second."""
    if seconds > PATIENCE:
        say(f"relaymodel: this takes about {duration(seconds)}", file=sys.stderr)


def duration(seconds: float) -> str:
    """Return a time in words, to the unit.

    >>> duration(90), duration(7200), duration(9e5)
    ('2 minutes', '2 hours', '10 days')
    """
    unit, size = next((pair for pair in TIME_UNITS if seconds >= 1.5 * pair[1]), TIME_UNITS[-1])
    return f"{round(seconds / size)} {unit}"


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings as one line each on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(item.message) for item in caught if item.category is UserWarning):
        say(f"relaymodel: warning: {one_line(message)}", file=sys.stderr)
