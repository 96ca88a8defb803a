"""What the options of all commands are made of, and those that say which model and which tokens."""

import re
from collections.abc import Callable, Sequence
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
def options(group: type[Options]) -> type[Options]:
    """Make a class a group of options, which any command may take as one parameter."""
    return Parameter(name="*")(dataclass(frozen=True, kw_only=True)(group))


def option(
    name: str, metavar: str, words: str, parse: Callable[[str, str], Any] | None = None, group: Group = ARGUMENTS
) -> Parameter:
    """Return an option, or an argument if its name has no dashes, whose text `parse(name, text)` turns into a value."""

    def convert(_: type, tokens: Any) -> Any:
        text = tokens[-1].value  # of an option given twice the last, as everywhere
        if not name.startswith("-") and re.match("-.", text):  # an argument may be - alone
            raise UnknownOptionError(token=tokens[-1], argument_collection=ArgumentCollection())  # type: ignore[no-untyped-call]
        return text if parse is None else parse(name, text)

    return Parameter(
        name=name if name.startswith("-") else None,
        metavar=metavar,
        help=words,
        group=group,
        converter=convert,
        n_tokens=1,
        accepts_keys=False,
        allow_repeating=True,
        allow_leading_hyphen=True,
        negative=(),
        show_default=_plain if "[default:" not in words else False,
    )


def flag(name: str, words: str, group: Group) -> Parameter:
    """Return an option without a value."""
    return Parameter(name=name, help=words, group=group, negative=(), show_default=False)


def _plain(value: object) -> str:
    """Return a default as it would be typed, nothing for None."""
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


Json = Annotated[bool, flag("--json", "Print one JSON object and nothing else.", OUTPUT)]
Force = Annotated[bool, flag("--force", "Overwrite files that exist.", OUTPUT)]


def _heads(name: str, text: str) -> list[tuple[Head, ...]]:
    """Return the heads of each layer from a comma-separated list."""
    try:
        return [parse_heads(part) for part in parts(text)]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _prompt(name: str, text: str) -> int:
    if "," in text:
        raise ValueError(f"{name} must be one number, got {show(text)}; relaymodel sweep takes several")
    return whole()(name, text)


def _depths(name: str, text: str) -> list[int]:
    return list(dict.fromkeys(whole(MAX_DEPTH)(name, part) for part in parts(text)))


@options
class ModelOptions:
    """A model: its prompt and its layers."""

    prompt: Annotated[int, option("--prompt", "P", "Number of prompt tokens.", _prompt, MODEL)] = 64
    depth: Annotated[
        Sequence[int] | None,
        option(
            "--depth",
            "L",
            "Number of layers; for influence several, L,L,...  [default: 6, or as many as the lists have]",
            _depths,
            MODEL,
        ),
    ] = None
    relay: Annotated[
        Sequence[Number] | None,
        option("--relay", "X[,X...]", "Relay strength, of all layers or of each.  [default: 1]", numbers, MODEL),
    ] = None
    residual: Annotated[
        Sequence[Number], option("--residual", "X[,X...]", "Residual strength, likewise.", numbers, MODEL)
    ] = (1,)
    position: Annotated[
        Sequence[Number] | None,
        option("--position", "X[,X...]", "Position exponent g > -1, likewise.  [default: 0]", numbers, MODEL),
    ] = None
    recency: Annotated[
        Sequence[Number] | None,
        option("--recency", "X[,X...]", "Recency exponent gamma < 1, likewise.  [default: 0]", numbers, MODEL),
    ] = None
    sink: Annotated[
        Sequence[Number], option("--sink", "X[,X...]", "Weight of the first token, likewise.", numbers, MODEL)
    ] = (0,)
    heads: Annotated[
        Sequence[tuple[Head, ...]] | None,
        option(
            "--heads",
            "H[,H...]",
            "Several heads instead of relay, position, recency: such as 0.3:recency=0.7+0.2:position=0.5.",
            _heads,
            MODEL,
        ),
    ] = None

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
            for name, given in single.items():
                if given is not None:
                    raise ValueError(f"{name} must not be given together with --heads, which says it for each head")
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


@options
class GridOptions:
    """Continuation tokens: those that are named, or a grid equal in log t."""

    t: Annotated[Sequence[Number] | None, option("--t", "T[,T...]", "Such as 1e3,1e6.", numbers, GRID_PANEL)] = None
    t_max: Annotated[
        int | None, option("--t-max", "T", "Last of a grid equal in log t.  [default: 1e6]", whole(least=2), GRID_PANEL)
    ] = None
    points: Annotated[
        int | None,
        option("--points", "N", "Points of that grid.  [default: 25]", whole(MOST_POINTS, least=2), GRID_PANEL),
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
