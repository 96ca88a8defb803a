"""What the commands on networks share: the options that name a model and its texts, and what these name."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.cli.numbers import whole
from relaymodel.memory import demand_memory

if TYPE_CHECKING:
    from relaymodel.networks.protocol import Network, Pairs

NUMPY = "untrained-numpy"
ENGLISH = "english"
WIDTH, HEADS = 256, 8  # of the NumPy network: seconds a pair, and wide enough for its exponents to be typical
SPEED = 5e9  # floating-point operations a second, about: single rows and exponentials are among them
PATIENCE = 30.0  # seconds of work about which nothing need be said
UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
LONGEST, DEEPEST = 10**6, 1000  # beyond, memory ends before patience

PromptA = Annotated[Path | None, typer.Option("--prompt-a", metavar="FILE", help="Text of prompt A.")]
PromptB = Annotated[Path | None, typer.Option("--prompt-b", metavar="FILE", help="Text of prompt B.")]
Continuation = Annotated[
    str | None,
    typer.Option(
        "--continuation",
        metavar="FILE|random|generated|english",
        help="A text file; random tokens; written by the model after prompt A; or Python's documentation.  "
        "[default: english, for untrained-numpy random]",
    ),
]
PromptLength = Annotated[str, typer.Option("--prompt", metavar="P", help="Tokens of each prompt.")]
Length = Annotated[str, typer.Option("--t-max", metavar="T", help="Tokens of the continuation.")]
BiasStrength = Annotated[
    str, typer.Option("--bias", metavar="B", help="Add B log(1 + t/P) to the logits of the prompt's keys.")
]
Untrained = Annotated[bool, typer.Option("--untrained", help="Its architecture, random weights.")]
NumpyDepth = Annotated[
    str | None, typer.Option("--depth", metavar="L", help="Layers of untrained-numpy.  [default: 12]")
]
Seed = Annotated[str, typer.Option("--seed", metavar="S", help="Of random weights, tokens and pieces.")]


def check_prompts(prompt_a: Path | None, prompt_b: Path | None) -> None:
    """Raise `ValueError` or `FileNotFoundError` unless both prompts are files, or neither is given."""
    if (prompt_a is None) != (prompt_b is None):
        raise ValueError("--prompt-a and --prompt-b must be given together, or neither of them")
    for option, file in (("--prompt-a", prompt_a), ("--prompt-b", prompt_b)):
        if file is not None and not file.is_file():
            raise FileNotFoundError(f"{option} must be a text file, and there is none at {file}")


def choose_network(
    model: str, untrained: bool, depth: str | None, seed: int, dtype: str | None, length: int
) -> "Network":
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
        need = 8 * shape.parameters + shape.memory(length)
        demand_memory("--t-max, --prompt or --depth", need, f"a network of {shape.depth} layers on {length} tokens")
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


def choose_texts(
    network: "Network", a: Path | None, b: Path | None, source: str, count: int, P: int, steps: int, seed: int
) -> "Pairs":
    """Return the texts: drawn together where no file gives the prompts, otherwise cut from the files in turn."""
    from relaymodel.networks.protocol import Generated, Pairs, RandomTokens, draw_pairs

    file = source not in ("random", "generated", "english")
    if a is None or b is None:
        text = None if source == "random" else _text(source if file else ENGLISH)
        length = 2 if source == "generated" else steps
        drawn = draw_pairs(network, pairs=count, prompt=P, steps=length, text=text, seed=seed)
        if source != "generated":
            return drawn
        facts = {"continuation": f"generated, seed {seed}; prompts english"}
        return replace(drawn, continuation=Generated(steps, seed), provenance=facts)
    one, other = _cut(network, a, count, P, "--prompt-a"), _cut(network, b, count, P, "--prompt-b")
    if source == "random":
        return Pairs(one, other, RandomTokens(steps, seed))
    if source == "generated":
        return Pairs(one, other, Generated(steps, seed))
    if not file:
        drawn = draw_pairs(network, pairs=count, prompt=P, steps=steps, text=_text(ENGLISH), seed=seed)
        return replace(drawn, prompt_a=one, prompt_b=other, provenance={"continuation": "english"})
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
    if not path.is_file():
        raise FileNotFoundError(f"{option} must be {choices} or a text file, and there is none at {source}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text: {error}") from None


def announce(operations: float) -> None:
    """Say on stderr how long so much NumPy will take, if that is long.

    >>> duration(90), duration(7200), duration(9e5)
    ('2 minutes', '2 hours', '10 days')
    """
    seconds = operations / SPEED
    if seconds > PATIENCE:
        print(f"relaymodel: this takes about {duration(seconds)}", file=sys.stderr)


def duration(seconds: float) -> str:
    """Return a time in words, to the unit."""
    unit, size = next((pair for pair in UNITS if seconds >= 1.5 * pair[1]), UNITS[-1])
    return f"{round(seconds / size)} {unit}"


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings as one line each on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(item.message) for item in caught if item.category is UserWarning):
        print(f"relaymodel: warning: {' '.join(message.split())}", file=sys.stderr)
