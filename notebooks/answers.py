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
from relaymodel import control
from relaymodel.simulation import ConstantShare


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
        if not isinstance(right, str) and (isinstance(answer, bool) or not isinstance(answer, (Real, sympy.Expr))):
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


def density_at_the_beginning(recency: float) -> float:
    """Return p(0) of a head, measured: how much it gives to the first of many tokens, over uniform attention."""
    n = 10**9
    head, even = (uniform(1, 1, 1, residual=0, recency=gamma) for gamma in (recency, 0))
    return round(float(rm.token_influence(head, 1, n) / rm.token_influence(even, 1, n)), 6)


def turning(model: rm.RelayModel, strength: float, last: int) -> int:
    """Return the t up to `last` at which a simulation under a bias has its least influence."""
    curve = rm.simulate(model, last, bias=rm.PromptBias(strength), samples=range(1, last + 1))
    return int(curve.t[curve.distance.argmin()])


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

EXERCISES |= {
    "5.1": Exercise(
        lambda: Fraction(5, 9),
        hints={
            Fraction(25, 72): "That is the lower bound.",
            Fraction(10, 9): "Divide by k! = 2.",
            Fraction(19, 36): "That is h_2 itself.",
        },
    ),
    "5.2": Exercise(
        lambda: 2, hints={1: "h_1 = p_1 is its own bound, and it enters with two layers.", 3: "h_2 enters."}
    ),
    "5.3": Exercise(
        lambda: float(rm.derive(3, relay=sympy.Rational(1, 2)).limit.A),
        hints={0.125: "Divide by (L - 1)! = 2.", 1 / 48: "The factorial is (L - 1)!, not L!."},
    ),
    "5.4": Exercise(lambda: 100, hints={10: "Square it.", 50: "That is the answer for six layers."}),
    "5.5": Exercise(lambda: 0.75, hints={0.25: "The exponent is 1 - beta."}),
    "6.1": Exercise(
        lambda: rm.token_influence(uniform(1, 1, 0.5, residual=0.5), 1000, 1000),
        hints={0.5: "It is also one of the thousand tokens of the mean.", 0.0005: "That is the share of the others."},
    ),
    "6.2": Exercise(lambda: 7, hints={6: "2^-6 is 0.0156.", 8: "Seven do."}),
    "6.3": Exercise(
        lambda: rm.derive(2, relay=sympy.Rational(1, 2), residual=sympy.Rational(1, 2)).continuum_density.density,
        hints={},
    ),
    "6.4": Exercise(lambda: "no", hints={"yes": "Compute it: q and token_influence are both at hand."}),
    "6.5": Exercise(
        lambda: "relay",
        hints={"residual": "It makes the right arm.", "softmax": "There is no softmax here, and still a left arm."},
    ),
}

EXERCISES |= {
    "7.1": Exercise(
        lambda: 0.5, hints={1: "That is the exponent of the true difference.", 2: "The root, not the square."}
    ),
    "7.2": Exercise(
        lambda: rm.rms_influence(uniform(64, 1, 1), 64),
        hints={0.5: "That is D. Squares add: the root of P, not P.", 0.125: "Divide by N = 128, not by t."},
    ),
    "7.3": Exercise(lambda: "no", hints={"yes": "Look at the local exponent at t = 1024."}),
    "7.4": Exercise(lambda: "no", hints={"yes": "Are the laws told apart in this window?"}),
    "7.5": Exercise(lambda: "yes", hints={"no": "What does a constant factor do to a line on log-log paper?"}),
}


def share(strength: float, prompt: int, t: int) -> Fraction:
    """Return the prompt's share of the attention under a bias of whole strength."""
    weight = prompt * Fraction(prompt + t, prompt) ** int(strength)
    return weight / (weight + t)


EXERCISES |= {
    "8.1": Exercise(
        lambda: share(1, 64, 64),
        hints={Fraction(1, 2): "That is the limit for large t, or the share without a bias."},
    ),
    "8.2": Exercise(
        lambda: float(control.bias_limit(uniform(64, 1, 1), ConstantShare(Fraction(1, 2))).limit),
        hints={1.5: "That is the gap. Subtract it from f(1) = 2.", 2: "That is f(1), on the prompt."},
    ),
    "8.3": Exercise(
        lambda: control.turning_point(uniform(100, 1, 1), rm.PromptBias(Fraction(11, 10))).t,
        hints={100: "Divide P by beta - 1.", 90.9090909: "Divide P by beta - 1, not by beta."},
    ),
    "8.4": Exercise(
        lambda: control.reminder_limit(uniform(64, 2, 1), rm.Reminders(64, 8)).between,
        hints={Fraction(1, 2): "Subtract what the residual connections alone carry: f(1) - 1.", 3: "Times R/M."},
    ),
    "8.5": Exercise(
        lambda: control.plan_reminders(uniform(64, 2, 1), level=1).at_least,
        hints={Fraction(1, 4): "f(1) - 1 = 3, not 4.", 3: "That is M/R."},
    ),
    "8.6": Exercise(lambda: "no", hints={"yes": "Is any point of the figure below the dotted line at 0?"}),
    "9.1": Exercise(
        lambda: density_at_the_beginning(0.75),
        hints={0.75: "That is the recency. Put u = 0 into the density.", 4: "The other way: less than uniform."},
    ),
    "9.2": Exercise(
        lambda: float(rm.Head(1, recency=Fraction(1, 2)).eigenvalue(2)),
        hints={0.5: "That is uniform attention.", 1 / 3: "That is what the first token gets."},
    ),
    "9.3": Exercise(
        lambda: rm.local_exponent(uniform(64, 6, 0.5, recency=0.8), 1000),
        rel=0.01,
        hints={1.0: "That is the limit.", 0.5117153476624735: "That is uniform attention. Give the recency."},
    ),
    "9.4": Exercise(
        lambda: (0.3 * density_at_the_beginning(0.75) + 0.2 * density_at_the_beginning(-1)) ** 3 / 2,
        hints={0.107171875: "Do not forget the factorial.", 0.0625: "That is uniform attention: p(0) differs."},
    ),
    "9.5": Exercise(lambda: turning(uniform(64, 12, 0.2, recency=0.9), 2, 1024), rel=1e-9),
    "9.6": Exercise(
        lambda: 1 - 0.4 * density_at_the_beginning(0.85) / 0.2,
        hints={
            0.3: "That is p(0). The question is about the recency.",
            0.425: "λ times p(0) is the same, not λ times γ.",
        },
    ),
    "9.7": Exercise(
        lambda: float(uniform(64, 2, 1, sink=1).plateau),
        hints={9: "That is the value on the prompt.", 4: "That is f(1), which is lost.", 1: "The layers multiply."},
    ),
}
