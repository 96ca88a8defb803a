"""The answers to the exercises, computed by the package, and what common mistakes point to.

SPOILERS.  Each answer is worked out in the notebook, behind a fold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import Any

import sympy

import relaymodel as rm


@dataclass(frozen=True)
class Exercise:
    """The right answer, how close a number must come, and hints {wrong answer: what it points to}."""

    right: Callable[[], Any]
    rel: float = 1e-9
    hints: Mapping[Any, str] = field(default_factory=dict)

    def verdict(self, answer: Any) -> str:
        """Return what to say of an answer."""
        if answer is ...:
            return "no answer yet. Replace the dots and run the cell again."
        right = self.right()
        if isinstance(right, (Real, sympy.Expr)) and isinstance(answer, (str, bool)):
            return f"not yet: the answer is a number or an expression, not {answer!r}."
        if isinstance(right, str) and not isinstance(answer, str):
            return f"not yet: the answer is a word in quotes, not {answer!r}."
        if self._same(answer, right):
            return "right!"
        for wrong, hint in self.hints.items():
            if self._same(answer, wrong):
                return f"not yet. {hint}"
        return "not yet."

    def _same(self, answer: Any, right: Any) -> bool:
        if isinstance(right, str) or isinstance(answer, str):
            return isinstance(answer, str) and isinstance(right, str) and answer.strip().lower() == right
        if isinstance(right, sympy.Expr) or isinstance(answer, sympy.Expr):
            difference = sympy.expand(sympy.sympify(answer) - sympy.sympify(right))
            return bool(abs(sympy.N(difference)) <= self.rel) if difference.is_number else difference == 0
        return bool(abs(answer - right) <= self.rel * abs(right))


def uniform(prompt: int, depth: int, relay: Any, **others: Any) -> rm.RelayModel:
    """Return a model of equal layers."""
    return rm.RelayModel.uniform(prompt, depth, relay, **others)


def dilution_reaches(share: float, prompt: int) -> float:
    """Return the t at which one layer of strength 1 has this influence, found by bisection."""
    low, high = 1.0, 1e9
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if rm.influence(uniform(prompt, 1, 1), middle) > share else (low, middle)
    return low


EXERCISES: dict[str, Exercise] = {
    "1.1": Exercise(
        lambda: dilution_reaches(0.01, 64),
        hints={6400: "That is the position n. The question is about t = n - P.", 64: "There the share is one half."},
    ),
    "1.2": Exercise(
        lambda: float(uniform(64, 6, 0.5).saturation),
        hints={1.5: "That is one layer.", 4: "The layers multiply, they do not add up."},
    ),
    "1.3": Exercise(
        lambda: float(sympy.exp(3) - 1),
        rel=0.01,
        hints={3: "Take the exponential: log(1 + t/P) = 3.", 20.0855369: "That is N/P. The question is about t/P."},
    ),
    "1.4": Exercise(lambda: rm.derive(6).limit.log_power, hints={6: "The last step has to reach t: it is no stop."}),
    "1.5": Exercise(
        lambda: rm.influence_fraction(uniform(1, 2, 1), 1),
        hints={0.5: "That is after one layer.", 4: "That is the first number, the prompt's."},
    ),
}

EXERCISES |= {
    "2.1": Exercise(lambda: 1, hints={20: "Try it: the matrices commute.", 0.05: "Try it: the matrices commute."}),
    "2.2": Exercise(
        lambda: rm.RelayModel(1, [rm.Layer(1, 0, 1)]).eigenvalue(3),
        hints={Fraction(1, 3): "That is for g = 0.", Fraction(3, 2): "There is a residual of 1 in this answer."},
    ),
    "2.3": Exercise(
        lambda: Fraction(19, 36),
        hints={
            Fraction(25, 36): "The square of the sum counts the pair (2, 3) twice.",
            Fraction(1, 6): "The same token may be picked twice: (2, 2) and (3, 3) belong to it.",
        },
    ),
    "2.4": Exercise(
        lambda: int(rm.derive(3, relay=1).poles[0].totals[0]),
        hints={8: "The path that uses no attention, m = 0, does not count.", 3: "That is e_1 alone."},
    ),
    "2.5": Exercise(
        lambda: float(rm.derive(5, relay=1, position=[0, 0, 0, *[sympy.Rational(-1, 2)] * 2]).limit.exponent),
        hints={1: "That is the exponent of the larger g.", 1.5: "The exponent is 1 + g, and g is negative here."},
    ),
    "2.6": Exercise(
        lambda: rm.derive(5, relay=1, position=[0, 0, 0, *[sympy.Rational(-1, 2)] * 2]).limit.log_power,
        hints={4: "Only the layers that share the smallest g count.", 2: "A pole of order 2 gives one derivative."},
    ),
}

EXERCISES |= {
    "3.1": Exercise(
        lambda: 10**15 / 10**6 / 3.15e7, rel=0.02, hints={1e9: "These are seconds. The question is about years."}
    ),
    "3.2": Exercise(
        lambda: 2**24,
        hints={
            2**23: "There the spacing is 1: a counter can still go on.",
            2**25: "It has been stuck for a while there.",
        },
    ),
    "3.3": Exercise(lambda: 16 - 9, hints={9: "Nine digits are lost. How many are left?"}),
    "3.4": Exercise(
        lambda: 1e-10,
        rel=0.01,
        hints={
            1e-6: "Six digits are to be left, so ten may be lost.",
            1e10: "That is the condition number, 1/epsilon.",
        },
    ),
    "3.5": Exercise(lambda: 2.2, hints={1.9: "2.5 - 0.4 is 2.1.", 3.0: "2.5 + 0.4 is 2.9."}),
    "4.1": Exercise(
        lambda: 576.0, hints={640: "That is the position P + t.", 57.6: "Divide by 0.1: t - 0.9 t = 57.6."}
    ),
    "4.2": Exercise(lambda: "windows", hints={"r2": "It was 0.9996 above.", "error": "It was 0.0012 above."}),
    "4.3": Exercise(
        lambda: float(sympy.exp(50)),
        rel=0.01,
        hints={50: "That is log t.", 1e50: "The logarithm is the natural one.", float(sympy.exp(60)): "L - 1, not L."},
    ),
    "4.4": Exercise(
        lambda: float(rm.derive(6, relay=1).limit.exponent), hints={0.55: "That is the exponent of the window."}
    ),
    "4.5": Exercise(lambda: 6, hints={5: "L - 1 = 5."}),
}
