"""Claims about networks while they learn, with and without a bias on the prompt's keys (THEORY sections 7 and 9)."""

import math
from pathlib import Path

from relaymodel import files, plotting
from relaymodel.networks.protocol.decay import FIRST_TOKENS, REVERSED, STOPPED, verdict
from relaymodel.networks.training import Progression, Training
from relaymodel.networks.training.result import ADDED, PLAIN, TRAINED
from relaymodel.report.claim import Verdict, Workspace, claim, literal

SIGMAS = 2
STATED = 4
"""The strength that the claim of a reversal is about, as it was seen while the trainings were explored."""
BIASES_FILE = "biases.csv"
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


@claim(
    f"A bias of strength {STATED} stops the decay of the untrained network and reverses it later in training",
    section="7 and 10",
    needs="training",
)
def decay_reverses(workspace: Workspace) -> Verdict:
    """Read what the checkpoints of the plain training are under several biases, each by one criterion."""
    path = Path(workspace.inputs["training"]) / BIASES_FILE
    how = (
        "Stopped: $|\\alpha| \\le 0.03$ from t = 16 and from t = 64. Reversed: below -0.05 by more than two standard "
        "errors, over seeds or pairs, in both windows. Decaying: otherwise. The claim holds if, under strength "
        f"{STATED}, the first checkpoint is stopped and a later one reversed.",
        "The share that the prompt has at the start of the window decides: uniform attention, untrained, begins with "
        "nearly all of it, which a bias can keep but not raise; attention by distance begins with little, which the "
        "same bias raises through the window, so that D grows. Strength 1 only makes up for uniform dilution.",
    )
    if not path.is_file():
        told = f"not measured: the folder has no {BIASES_FILE}, which python -m studies checkpoint_biases writes"
        return Verdict(False, told, how)
    table = files.read_table(path, "step, bias, alpha_16, stderr_16, alpha_64, stderr_64")
    listed: dict[str, list[tuple[int, str]]] = {}
    rows = []
    for _, texts in table:
        row = dict(zip(table.names, texts, strict=True))
        exponents = [(float(row[f"alpha_{t}"]), float(row[f"stderr_{t}"])) for t in FIRST_TOKENS]
        listed.setdefault(row["bias"], []).append((int(row["step"]), verdict(exponents)))
        rows.append((int(row["step"]), row["bias"], *(x for pair in exponents for x in pair), verdict(exponents)))
    header = (
        "step",
        "bias",
        *(f"{kind}, from t = {t}" for t in FIRST_TOKENS for kind in ("exponent", "error")),
        "it is",
    )
    workspace.table("training_biases", "Checkpoints of the plain training under biases.", header, rows)
    found = dict(listed.get(f"strength {STATED}", []))
    first = min(found, default=0)
    later = [step for step, said in found.items() if said == REVERSED and step > first]
    finding = "; ".join(
        f"{bias}: " + ", ".join(f"{said} at step {step}" for step, said in checkpoints)
        for bias, checkpoints in listed.items()
        if bias != "none"
    )
    return Verdict(found.get(first) == STOPPED and bool(later), finding, how)


def _above(one: Progression, i: int, other: Progression, j: int) -> bool:
    """Whether one exponent is above another by more than two standard errors of their difference."""
    return bool(one.alpha[i] - other.alpha[j] > SIGMAS * math.hypot(one.stderr[i], other.stderr[j]))
