"""Claims about networks while they learn, with and without a bias on the prompt's keys (THEORY sections 7 and 9)."""

import math

from relaymodel import plotting
from relaymodel.networks.training import Progression, Training
from relaymodel.networks.training.result import ADDED, PLAIN, TRAINED
from relaymodel.report.claim import Verdict, Workspace, claim, literal

SIGMAS = 2
NEAR_ZERO = 0.15
"""Of a decay that the bias has stopped: with strength 1 the relay model itself leaves about 0.1 in windows of t/P."""


def _arms(workspace: Workspace) -> tuple[Training, dict[str, Progression]]:
    training = Training.read(workspace.inputs["training"])
    lacking = [arm for arm in (PLAIN, TRAINED, ADDED) if arm not in training.arms]
    if lacking:
        raise ValueError(
            f"training must hold three arms, and {training.folder} lacks {', '.join(lacking)}; "
            "relaymodel train TEXT --arms --out DIR measures them all"
        )
    return training, {arm: training.alpha(arm) for arm in training.arms}


def _at(one: Progression, index: int) -> str:
    return f"{one.alpha[index]:.3f} ± {one.stderr[index]:.3f}"


@claim(
    "Training raises the exponent; a bias on the prompt's keys keeps it small at first", section="7", needs="training"
)
def training_raises_the_exponent(workspace: Workspace) -> Verdict:
    """Compare the arms at the first and at the last checkpoint."""
    training, found = _arms(workspace)
    plain, trained, added = (found[arm] for arm in (PLAIN, TRAINED, ADDED))
    workspace.table(
        "training",
        f"Exponents at layer {plain.layer}, mean and standard error over {len(plain.seeds)} seeds.",
        ("arm", "step", "exponent", "standard error"),
        [
            (arm, int(step), float(alpha), float(error))
            for arm, one in found.items()
            for step, alpha, error in zip(one.steps, one.alpha, one.stderr, strict=True)
        ],
    )
    caption = f"Exponents while networks learn, layer {plain.layer}, {len(plain.seeds)} seeds: mean and standard error."
    workspace.image("training", caption, plotting.plot_training(training))
    rises = _above(plain, -1, plain, 0)
    stopped = all(abs(one.alpha[0]) < NEAR_ZERO for one in (trained, added))
    return Verdict(
        rises and stopped,
        f"alpha {_at(plain, 0)} at step 0 and {_at(plain, -1)} at step {plain.steps[-1]} without bias; "
        f"{_at(trained, 0)} and {_at(trained, -1)} with the bias in training; {_at(added, 0)} and {_at(added, -1)} "
        "with the bias at measurement only",
        (
            "Small networks are trained on bytes and measured at checkpoints, in three arms: without bias; with the "
            "bias $b_t$ on the prompt's keys from the first step on; and the first ones with that bias added when "
            f"they are measured. Command: {literal(training.configuration.get('command', 'not recorded'))}.",
            "With $\\beta = 1$ the prompt's share of uniform attention, $(P+t)/(P+2t)$, still falls to 1/2 while t is "
            "not far beyond P, which an exponent of about 0.1 shows.",
            f"The claim holds if the exponent rises without bias by more than {SIGMAS} standard errors, and is below "
            f"{NEAR_ZERO} at step 0 with the bias. What the bias does later is the next claim.",
        ),
    )


@claim("Under the bias the decay reverses later in training", section="7", needs="training")
def decay_reverses(workspace: Workspace) -> Verdict:
    """Look for an exponent below 0 at a later checkpoint."""
    _, found = _arms(workspace)
    listed, reversed_ = [], False
    for arm in (TRAINED, ADDED):
        one = found[arm]
        lowest = 1 + int((one.alpha + SIGMAS * one.stderr)[1:].argmin())
        below = bool(one.alpha[lowest] + SIGMAS * one.stderr[lowest] < 0)
        reversed_ |= below
        word = "reverses" if below else "does not reverse"
        listed.append(
            f"{arm}: {word}, lowest alpha {_at(one, lowest)} at step {one.steps[lowest]}, {_at(one, -1)} at the end"
        )
    return Verdict(
        reversed_,
        "; ".join(listed),
        (
            f"A reversal is an exponent below 0 by more than {SIGMAS} standard errors at a checkpoint after step 0: "
            "the two runs move apart while the prompt recedes. The source of the theory reports one; its settings are "
            "not known, and the verdict is on the networks of this folder.",
            "A bias of strength $\\beta$ makes up for what uniform attention loses. If training makes attention local, "
            "as with weights $s^g$, $g > 0$, the prompt's share falls faster than $P/(P+t)$, the exponent becomes "
            "$1 + g - \\beta$ instead of $1 - \\beta$, and the decay returns under the bias; it is reversed where "
            "$\\beta > 1 + g$.",
        ),
    )


def _above(one: Progression, i: int, other: Progression, j: int) -> bool:
    """Whether one exponent is above another by more than two standard errors of their difference."""
    return bool(one.alpha[i] - other.alpha[j] > SIGMAS * math.hypot(one.stderr[i], other.stderr[j]))
