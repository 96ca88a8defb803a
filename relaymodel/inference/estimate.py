"""One number that was estimated: its value, how far it may be off, and what could not be told."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """One number that was estimated.

    Attributes
    ----------
    value, stderr
        Best value and standard error; the error is 0 for a number that was held.
    lower, upper
        95 % interval.  An end that the curve does not set is that of the parameter's range.
    fitted
        Whether it was fitted, and not held.
    identified
        Whether the curve sets both ends of the interval.
    caveats
        What the curve could not tell, or what else it shows, a sentence each.
    """

    value: float
    stderr: float
    lower: float
    upper: float
    fitted: bool = True
    identified: bool = True
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.fitted:
            return f"{self.value:.6g} (held)"
        ends = f"{self.value:.4g} (95 %: {self.lower:.4g} to {self.upper:.4g}"
        return ends + (")" if self.identified else ", not determined)")
