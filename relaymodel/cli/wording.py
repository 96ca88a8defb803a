"""Errors of the package in the words of a command line: its options, and values as they were typed."""

import re
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress

from relaymodel.checks import show
from relaymodel.cli.numbers import number, parts

RENAMED = {
    "steps": ("--t-max",),
    "level": ("--hold",),
    "strength": ("--bias",),
    "network": ("MODEL",),
    "model": ("MODEL",),
    "text": ("--continuation", "TEXT"),
    "pairs": ("--pairs",),
    "reminders": ("--every",),
    "power": ("--split",),
    "share": ("--clamp", "--share"),
}
"""What the package calls otherwise than the command line, and the options that it may mean."""

OBJECTS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"\bFraction\((-?\d+), (\d+)\)", lambda found: f"{found[1]}/{found[2]}"),
    (r"\d{60,}(?:\.\.\.)?", lambda found: f"{found[0][:20]}..."),
    (r"\bPromptBias\(([^()\s]+)\)", lambda found: f"--bias {found[1]}"),
    (r"(?:\ba )?\bPromptBias\b", lambda _: "--bias"),
    (r"(?:\ba )?\bConstantShare\b", lambda _: "--share"),
    (r"\bLayer\(([^()]*)\)?", lambda found: f"({found[1].replace('=', ' ')})"),
    (r", got RelayModel\(.*", lambda _: ""),
    (r"^model (?=must have an influence)", lambda _: "the model (--relay, --residual, --sink or --heads) "),
    (r"^model\b", lambda _: "the model"),
    (r"^the relay strengths must not all vanish", lambda _: "--relay must not be 0 in every layer"),
    (r"\ba Curve\b", lambda _: "a curve"),
    (r"(--[a-z-]+)=True\b", lambda found: found[1]),
    (r", or use stream, which gives signed values", lambda _: ""),
    (r"\bresume=True, (?=--resume)", lambda _: ""),
    (r"\bNone, to be fitted,", lambda _: "fit"),
    (r"\b(?:use )?influence_ball (?:instead|returns it as a ball)", lambda _: "relaymodel influence has such values"),
    (r"(?:, or|;) ask for quantities=\['influence'\]", lambda _: ""),
)
"""What of the package an error shows, and what stands for it on the command line."""


def as_typed(message: str, arguments: Sequence[str], options: Set[str]) -> str:
    """Return a message of the package with a command's options in place of the package's names for them.

    A name is what the message begins with, what it gives a value (every = 3), and every word with an underscore.  The
    package's objects are written as options are, and a value as it was given.

    >>> as_typed("relay must be positive, got 100000000000000000", ["fit", "--relay", "1e17"], {"--relay"})
    '--relay must be positive, got 1e17'
    """

    def typed(found: re.Match[str]) -> str:
        named = (f"--{found[0].replace('_', '-')}", *RENAMED.get(found[0], ()))
        return next((name for name in named if name in options), found[0])

    begin = re.match(r"(?:\w+(?:, | or | \+ ))*\w+(?= (?:must|needs)\b)", message)
    end = begin.end() if begin else 0
    first = re.sub(r"\w+", typed, message[:end])
    # t = 3 in the middle of a message is a token, whichever option it comes from
    rest = re.sub(r"(?<![\w.-])(?:(?!t =)[a-z]+(?= = )|[a-z]+_[a-z]+\b|(?<=pass )[a-z]+(?==))", typed, message[end:])
    message = first + rest
    for shown, given in _given(message, arguments):
        typed_text = f"got {given}".replace("\\", r"\\")
        message = re.sub(rf"\bgot {re.escape(shown)}(?![\w.])", typed_text, message)
    for pattern, words in OBJECTS:
        message = re.sub(pattern, words, message)
    return message


def _given(message: str, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield how the numbers given to the options that a message names are shown by the package, and how typed."""
    for i, word in enumerate(arguments):
        option, equals, text = word.partition("=")
        if not option.startswith("--") or not re.search(rf"{re.escape(option)}(?![\w-])", message):
            continue
        text = text if equals else "".join(arguments[i + 1 : i + 2])
        with suppress(ValueError):
            values = [number(option, part) for part in parts(text)]
            for part, value in zip(parts(text), values, strict=True):
                yield from ((shown, part) for shown in _shown(value))
            yield ",".join(map(str, values)), text.strip()
            yield show(values), text.strip()


def _shown(value: object) -> Iterator[str]:
    yield from (show(value), str(value))
    with suppress(OverflowError):
        yield from (show(float(value)), f"{float(value):g}")  # type: ignore[arg-type]
