"""What `measure` can do to the prompt's share while it measures: rules of the share, and reminders."""

from typing import TYPE_CHECKING, Annotated

import relaymodel as rm
from relaymodel.checks import Number
from relaymodel.cli.numbers import number, whole
from relaymodel.cli.options import CONTROL, option, options

if TYPE_CHECKING:
    from relaymodel.simulation import ClampedShare, PromptBias, Reminders, SplitSoftmax


def reminders(every: int | None, length: int | None) -> "Reminders | None":
    """Return the reminders of --every and --length, None of neither."""
    if every is None and length is None:
        return None
    if every is None or length is None:
        raise ValueError("--every and --length must be given together: R tokens in every M are reminders")
    return rm.Reminders(every, length)


@options(CONTROL)
class Intervention:
    """A rule of the prompt's share in place of --bias, and the prompt's own text returned."""

    split: Annotated[
        Number | None, option("K", "Raise the prompt's share of each head to the power K, at most 1.", number)
    ] = None
    clamp: Annotated[Number | None, option("C", "Hold the prompt's share of each head at C.", number)] = None
    every: Annotated[int | None, option("M", "Return the prompt's own text every M tokens.", whole())] = None
    length: Annotated[int | None, option("R", "Tokens of each such reminder, with --every.", whole())] = None

    def rule(self, bias: "PromptBias | None") -> "PromptBias | SplitSoftmax | ClampedShare | None":
        """Return the only rule of --bias, --split and --clamp that is given."""
        from relaymodel.simulation import ClampedShare, SplitSoftmax

        given = {"--bias": bias, "--split": self.split, "--clamp": self.clamp}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) > 1:
            raise ValueError(f"{chosen[0]} must not be given together with {chosen[1]}; choose one")
        if self.split is not None:
            return SplitSoftmax(self.split)
        return bias if self.clamp is None else ClampedShare(self.clamp)

    @property
    def reminders(self) -> "Reminders | None":
        """The reminders, if they are given."""
        return reminders(self.every, self.length)
