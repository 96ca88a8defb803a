"""What the options of all commands are made of, and those that say which model and which tokens."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, dataclass_transform

from cyclopts import ArgumentCollection, Group, Parameter, UnknownOptionError

from relaymodel.checks import Number, show
from relaymodel.cli.numbers import columns_of, log_grid, numbers, parts, whole
from relaymodel.model import Head, Layer, RelayModel, parse_heads

MAX_DEPTH = 1000  # far beyond any network
MOST_POINTS = 10**6  # lines that a terminal or a spreadsheet takes
DEFAULT_DEPTH, DEFAULT_T_MAX, DEFAULT_POINTS = 6, 10**6, 25  # a table that fits a terminal

ARGUMENTS, MODEL, CONTROL, TRAINING, GRID_PANEL, NETWORK, FIT, OUTPUT = (
    Group(title, sort_key=place)
    for place, title in enumerate(
        ("Arguments", "Model", "Control", "Training", "Continuation tokens", "Network and texts", "Fit", "Output")
    )
)

Options = TypeVar("Options")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(group: Group) -> Callable[[type[Options]], type[Options]]:
    """Make a class a group of options, named as its fields, which any command may take as one parameter."""
    return lambda made: Parameter(name="*", group=group)(dataclass(frozen=True, kw_only=True)(made))


def option(
    metavar: str,
    words: str,
    parse: Callable[[str, str], Any] | None = None,
    group: Group | None = None,
    name: str | None = None,
) -> Parameter:
    """Return an option, named as its parameter, or an argument, whose text `parse(name, text)` turns into a value."""

    def convert(_: type, tokens: Any) -> Any:
        token = tokens[-1]  # of an option given twice the last, as everywhere
        if token.keyword is None and re.match("-.", token.value):  # an argument may be - alone
            raise UnknownOptionError(token=token, argument_collection=ArgumentCollection())  # type: ignore[no-untyped-call]
        return token.value if parse is None else parse(token.keyword or metavar, token.value)

    return Parameter(
        name=name,
        metavar=metavar,
        help=words,
        **_grouped(group),
        converter=convert,
        n_tokens=1,
        accepts_keys=False,
        allow_repeating=True,
        allow_leading_hyphen=True,
        negative=(),
        show_default=_plain if "[default:" not in words else False,
    )


def flag(words: str, group: Group | None = None) -> Parameter:
    """Return an option without a value, named as its parameter."""
    return Parameter(help=words, **_grouped(group), negative=(), show_default=False)


def _grouped(group: Group | None) -> dict[str, Any]:
    """Return nothing for an option that takes the group of its class, which None would undo."""
    return {} if group is None else {"group": group}


def _plain(value: object) -> str:
    """Return a default as it would be typed, nothing for None."""
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


Json = Annotated[bool, flag("Print one JSON object and nothing else.", OUTPUT)]
Force = Annotated[bool, flag("Overwrite files that exist.", OUTPUT)]


def _heads(name: str, text: str) -> list[tuple[Head, ...]]:
    """Return the heads of each layer from a comma-separated list."""
    try:
        return [parse_heads(part) for part in parts(text)]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


Heads = Annotated[
    Sequence[tuple[Head, ...]] | None,
    option(
        "H[,H...]",
        "Several heads instead of relay, position, recency: such as 0.3:recency=0.7+0.2:position=0.5.",
        _heads,
        MODEL,
    ),
]


def refuse_beside_heads(given: Mapping[str, object]) -> None:
    """Refuse options that `--heads` says for each head."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} must not be given together with --heads, which says it for each head")


def _prompt(name: str, text: str) -> int:
    if "," in text:
        raise ValueError(f"{name} must be one number, got {show(text)}; relaymodel sweep takes several")
    return whole()(name, text)


def _depths(name: str, text: str) -> list[int]:
    return list(dict.fromkeys(whole(MAX_DEPTH)(name, part) for part in parts(text)))


@options(MODEL)
class ModelOptions:
    """A model: its prompt and its layers."""

    prompt: Annotated[int, option("P", "Number of prompt tokens.", _prompt)] = 64
    depth: Annotated[
        Sequence[int] | None,
        option(
            "L", "Number of layers; for influence several, L,L,...  [default: 6, or as many as the lists have]", _depths
        ),
    ] = None
    relay: Annotated[
        Sequence[Number] | None,
        option("X[,X...]", "Relay strength, of all layers or of each.  [default: 1]", numbers),
    ] = None
    residual: Annotated[Sequence[Number], option("X[,X...]", "Residual strength, likewise.", numbers)] = (1,)
    position: Annotated[
        Sequence[Number] | None,
        option("X[,X...]", "Position exponent g > -1, likewise.  [default: 0]", numbers),
    ] = None
    recency: Annotated[
        Sequence[Number] | None,
        option("X[,X...]", "Recency exponent gamma < 1, likewise.  [default: 0]", numbers),
    ] = None
    sink: Annotated[Sequence[Number], option("X[,X...]", "Weight of the first token, likewise.", numbers)] = (0,)
    heads: Heads = None

    def builds(self) -> dict[int, RelayModel]:
        """Return the model of each depth.

        >>> list(ModelOptions(depth=[2, 4]).builds())
        [2, 4]
        """
        models = [replace(self, depth=[L]).build() for L in self.depth or ()] or [self.build()]
        return {model.depth: model for model in models}

    def build(self) -> RelayModel:
        """Return the model.

        >>> ModelOptions(relay=[0.5, 1]).build().layers
        (Layer(relay=0.5, residual=1, position=0), Layer(relay=1, residual=1, position=0))
        """
        if self.depth is not None and len(self.depth) > 1:
            raise ValueError(
                f"--depth must be one number here, got {','.join(map(str, self.depth))}; relaymodel influence draws "
                "several, relaymodel sweep tabulates them"
            )
        single = {"--relay": self.relay, "--position": self.position, "--recency": self.recency}
        if self.heads is not None:
            refuse_beside_heads(single)
            lists: dict[str, Sequence[Any]] = {"--heads": self.heads}
        else:
            defaults = {"--relay": 1, "--position": 0, "--recency": 0}
            lists = {name: (defaults[name],) if given is None else given for name, given in single.items()}
        lists |= {"--residual": self.residual, "--sink": self.sink}
        L = columns_of(lists.items(), self.depth[0] if self.depth else None, DEFAULT_DEPTH)
        columns = {name[2:]: list(values) * L if len(values) == 1 else values for name, values in lists.items()}
        return RelayModel(
            self.prompt, tuple(Layer(**{name: column[l] for name, column in columns.items()}) for l in range(L))
        )


@options(GRID_PANEL)
class GridOptions:
    """Continuation tokens: those that are named, or a grid equal in log t."""

    t: Annotated[Sequence[Number] | None, option("T[,T...]", "Such as 1e3,1e6.", numbers)] = None
    t_max: Annotated[int | None, option("T", "Last of a grid equal in log t.  [default: 1e6]", whole(least=2))] = None
    points: Annotated[
        int | None,
        option("N", "Points of that grid.  [default: 25]", whole(MOST_POINTS, least=2)),
    ] = None

    def times(self, *, drawn: bool = False) -> Sequence[Number]:
        """Return them; if they are to be `drawn`, at least two that a figure can show.

        >>> GridOptions(t_max=100, points=3).times()
        [1, 10, 100]
        """
        found = self._times()
        if drawn and (len(set(found)) < 2 or max(found) > 10**300):
            raise ValueError("--plot must have at least two different t, none above 1e300, to draw")
        return found

    def _times(self) -> Sequence[Number]:
        if self.t is None:
            return list(log_grid(self.t_max or DEFAULT_T_MAX, self.points or DEFAULT_POINTS))
        if self.t_max is not None or self.points is not None:
            raise ValueError(
                f"--t must not be given together with {'--t-max' if self.t_max else '--points'}; choose one"
            )
        for value in self.t:
            if value <= 0:
                raise ValueError(
                    f"--t must be positive, since it counts the tokens after the prompt, got {show(str(value))}"
                )
        return list(self.t)
