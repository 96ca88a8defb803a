# %% [markdown]
# # 8. Stopping it: biases, reminders, training
#
# **What you will be able to do after this notebook**
#
# - stop the decay with a bias on the prompt's keys, and say exactly which bias does it;
# - say when the influence comes back, and how long that takes;
# - plan reminders: how often must the prompt return, at least?
# - read a training experiment that uses such a bias.
#
# From the notebooks before you need: $P$ is the length of the prompt, $t$ counts the tokens after it, $D(t)$ is the
# influence of the prompt. A layer has a relay strength $\lambda$ and a residual strength $\rho$. On the prompt itself
# the influence is $f(1) = \prod (\rho_l + \lambda_l)$. Without help, $D$ falls like $(\log t)^{L-1}/t$ behind $L$
# layers.

# %%
import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
from course import check, play

import relaymodel as rm
from relaymodel import plotting
from relaymodel.control import bias_limit, phase_diagram, plan_reminders, reminder_limit, turning_point
from relaymodel.explore import Setting
from relaymodel.networks.protocol import RandomTokens
from relaymodel.networks.training import Training
from relaymodel.networks.transformer import Architecture, Transformer
from relaymodel.simulation import ReminderBlocks

# %matplotlib inline

# %% [markdown]
# ## 8.1 A bias on the prompt's keys
#
# Dilution comes from the growing number of keys. So let us give the keys *of the prompt* a bonus $b_t$ in the attention
# logits, which may depend on the reader $t$. A key with bonus $b$ counts like $v = e^b$ keys. The prompt's share of the
# attention is then
#
# $$ s_t = \frac{P v_t}{P v_t + t}, \qquad
#    b_t = \beta \log\Bigl(1 + \frac tP\Bigr), \qquad v_t = \Bigl(1 + \frac tP\Bigr)^\beta . $$
#
# $\beta$ is the *strength* of the bias. It must be on the prompt only: a bonus for all keys cancels in the softmax.

# %%
P = 64
for t in (64, 6400, 640_000):
    v = {beta: np.exp(rm.PromptBias(beta).log_bias([t], P))[0] for beta in (0, 0.5, 1, 1.5)}
    print(f"t = {t:6d}   share:", "   ".join(f"β = {beta}: {P * x / (P * x + t):.4f}" for beta, x in v.items()))

# %% [markdown]
# - $\beta < 1$: the share still falls, like $t^{\beta-1}$.
# - $\beta = 1$: the share tends to one half. The bonus exactly *compensates* the growth of the text.
# - $\beta > 1$: the share tends to 1.
#
# **Exercise 8.1.** $\beta = 1$. What is the share of the prompt at $t = P$?

# %%
answer = ...
check("8.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# At $t = P$ we have $v = 2$, so $s = 2P/(2P + P)$.
#
# ```python
# answer = Fraction(2, 3)
# ```
# </details>

# %% [markdown]
# ## 8.2 Three phases
#
# What does $D(t)$ do? The relays see the same share, layer by layer. So the strength alone decides what happens for
# $t \to \infty$, at any depth:
#
# | strength | phase | $D(t)$ for large $t$ |
# | --- | --- | --- |
# | $0 < \beta < 1$ | decay | $\sim A\, t^{\beta - 1}$, no logarithm |
# | $\beta = 1$ | plateau | $\to f(1) - \prod_l (\rho_l + \lambda_l/2)$ |
# | $\beta > 1$ | reversal | comes back, $\to f(1) - \prod_l \rho_l$ |
#
# The plateau is easy to see. Look at the gap $f(1) - D$ between prompt and continuation. If the share of the prompt is
# $c$, then of the mean only the part $1 - c$ has a gap. So a layer multiplies the gap by $\rho + \lambda (1 - c)$.

# %%
model = rm.RelayModel.uniform(prompt=64, depth=6, relay=0.5)


def decay(ax, *strengths):
    biases = {rf"$\beta = {beta}$": rm.PromptBias(beta) for beta in strengths}
    plotting.plot_bias(model, biases, plotting.grid(1, 1e6, 60), ax=ax)


plotting.panels(lambda ax: decay(ax, 0, 0.5, 0.9, 1), lambda ax: decay(ax, 1, 1.1, 1.25, 1.5))

# %%
plateau = bias_limit(model, rm.PromptBias(1)).limit
print(f"plateau: {float(plateau):.4f}   f(1) - (1 + λ/2)^6 = {1.5**6 - 1.25**6:.4f}")
assert plateau == Fraction(3, 2) ** 6 - Fraction(5, 4) ** 6

# %% [markdown]
# **Exercise 8.2.** One layer, $\lambda = \rho = 1$, and a bias that holds the share at $c = 1/2$. At which value does
# $D$ stay?

# %%
answer = ...
check("8.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $f(1) = 2$, and the gap is $\rho + \lambda(1 - c) = 3/2$.
#
# ```python
# answer = 2 - 3 / 2
# ```
# </details>

# %% [markdown]
# In the right panel (whose vertical axis is linear) the curve for $\beta = 1.25$ first falls, and then rises: there is
# a turning point, the dot. For one layer it lies at $t = P/(\beta - 1)$. For more layers it comes later.

# %%
for depth in (1, 6, 12):
    turn = turning_point(rm.RelayModel.uniform(64, depth, 0.5), rm.PromptBias(1.25))
    print(f"L = {depth:2d}   D is least at t = {turn.t:.0f}")

# %% [markdown]
# **Exercise 8.3.** One layer, $P = 100$, $\beta = 1.1$. When does the decay turn?

# %%
answer = ...
check("8.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# ```python
# answer = 100 / (1.1 - 1)
# ```
#
# Shortly above $\beta = 1$ one has to wait long. In an experiment of 500 tokens this looks like a plateau.
# </details>

# %% [markdown]
# At a finite horizon the depth matters too. The *phase diagram* shows what is seen at $t = 500$: strength across,
# depth upwards, and contours of the local exponent. The dashed line is the boundary for $t \to \infty$. To its
# right, deep stacks still decay at $t = 500$ where shallow ones have turned already.

# %% gallery
diagram = phase_diagram(rm.RelayModel.uniform(64, 12, 0.5), np.linspace(0, 2, 41), horizon=500)
plotting.plot_phase_diagram(diagram).figure

# %% [markdown]
# ## 8.3 On a network
#
# Does a softmax network do the same? We add the bias to the logits of a small untrained transformer, in all layers and
# heads, and measure as in notebook 7.

# %%
shape = Architecture(depth=3, width=64, heads=4, vocabulary=256, positions="none")
network = Transformer.random(shape, np.random.default_rng(0))
pairs = rm.Pairs(*np.random.default_rng(1).integers(0, 256, (2, 2, 32)), RandomTokens(600))
measured = {}
for beta in (0, 0.5, 1, 1.5):
    run = rm.measure(network, pairs, bias=rm.PromptBias(beta), layers=[3])
    measured[beta] = run.alpha(3, t_min=64).alpha
    print(f"β = {beta}   exponent behind the last layer, from t = 64: {measured[beta]:5.2f}")
assert measured[0] > measured[0.5] > measured[1]
assert abs(measured[1]) < 0.1

# %% [markdown]
# The compensating bias stops the decay of a network that is not a relay model, and a stronger one does not let it
# begin.
#
# What about a *trained* network? Its attention is not uniform, and it was trained without the bias. Here are stored
# measurements on SmolLM2-135M (30 layers, eight pairs, from $t = 16$ to 2048):

# %%
lines = (Path("..") / "docs" / "smollm2.csv").read_text().splitlines()
for row in csv.DictReader(line for line in lines if not line.startswith("#")):
    if (row["weights"], row["layer"]) == ("trained", "30"):
        print(
            f"β = {row['bias']:3s}   exponent of the last layer: {float(row['alpha']):.2f} ± {float(row['stderr']):.2f}"
        )

# %% [markdown]
# The bias lowers the exponent here as well, but by less than $\beta$. The decay is slowed down, and not stopped.
#
# ## 8.4 Reminders
#
# Without touching the attention, one can repeat the prompt. If $R$ of every $M$ tokens are reminders, then for large
# $t$ the part $R/M$ of all attention finds the prompt, and
#
# $$ D(t) \to \bigl( f(1) - \textstyle\prod_l \rho_l \bigr) \frac RM . $$
#
# A finite number of reminders holds nothing: it is just a longer prompt.

# %%
schedules = {
    "8 in every 64": rm.Reminders(every=64, length=8),
    "1 in every 64": rm.Reminders(every=64, length=1),
    "64 tokens, once": ReminderBlocks(((1001, 1064),)),
}
plotting.plot_reminders(model, schedules, plotting.grid(1, 1e5, 120)).figure

# %% [markdown]
# **Exercise 8.4.** Two layers, $\lambda = \rho = 1$, and 8 reminder tokens in every 64. Which level does $D$ keep at
# ordinary tokens?

# %%
answer = ...
check("8.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $f(1) = 2^2 = 4$ and $\prod \rho = 1$.
#
# ```python
# answer = (4 - 1) * Fraction(8, 64)
# ```
# </details>

# %% [markdown]
# Turned around: to hold a level for all times, one needs at least the density $R/M = \text{level} / (f(1) - \prod
# \rho)$. `plan_reminders` finds a schedule, and says what it has proved. With a horizon, one block behind the prompt is
# the best.

# %%
forever = plan_reminders(model, level=1)
once = plan_reminders(model, level=1, horizon=10**5)
print(f"for all t: {float(forever.tokens):.1%} of the tokens, as evenly as they can be spread")
print(f"up to t = 10^5: {once.tokens} reminder tokens at once")
assert float(reminder_limit(model, forever.reminders).between) >= 1

# %% [markdown]
# Move the lengths of the reminders on the page: $R$ tokens in every 64.

# %%
four = rm.Reminders(64, 4)
play(
    plotting.plot_reminders(model, four, plotting.grid(1, 1e4, 80), level=1).figure,
    Setting(prompt=model.prompt, depth=model.depth, relay=model.layers[0].relay, reminders=four),
)

# %% [markdown]
# **Exercise 8.5.** The same two layers, $\lambda = \rho = 1$. Which density $R/M$ of reminders holds the level 1 for
# ever?

# %%
answer = ...
check("8.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The level is $3 R/M$.
#
# ```python
# answer = Fraction(1, 3)
# ```
# </details>

# %% [markdown]
# ## 8.5 Training with the bias
#
# So far the bias met networks that had not learned with it. What if it is there during training? A small GPT (6 layers,
# width 64) was trained on text, with three random seeds, plainly and with the compensating bias, $\beta = 1$. At
# several steps its exponent was measured, in four ways:
#
# - *plain*: no bias at all;
# - *bias in training*: the bias is there in training and in the measurement;
# - *bias at measurement*: trained plainly, the bias is added when the network is measured;
# - *bias in training only*: trained with the bias, measured without it.
#
# `relaymodel train` does this. The cell reads what it stored in the folder `docs/training`; it does not need torch.

# %%
folder = Path("..") / "docs" / "training"
training = Training.read(folder) if (folder / "alpha.csv").exists() else None
if training is None:
    print("There are no stored results here. relaymodel train english --arms --bias 1 --seeds 3 --out DIR makes them.")
else:
    for arm in training.arms:
        found = training.alpha(arm)
        ends = (f"{found.alpha[i]:.2f} ± {found.stderr[i]:.2f} at step {found.steps[i]}" for i in (0, -1))
        print(f"{arm:22s} exponent", ", ".join(ends))

# %%
plotting.plot_training(training).figure if training is not None else None

# %% [markdown]
# Step 0 is the untrained network, and there the theory of notebook 7 applies: the bias takes the exponent from 0.4 down
# to 0.1. It is not quite 0, because the window is short, $t = 16$ to 480. Then the network learns:
#
# - Plain training *raises* the exponent. A likely reason: the network learns to look at recent text.
# - With the bias, the exponent stays near 0.1 for some hundred steps: the decay is stopped. Then it rises steeply.
# - Take the bias away from the network that was trained with it, and it forgets *faster* than the plain one. This
#   suggests that it has learned to work against the bias. What it looks at is decided by its loss, not by us.

# %%
if training is not None:
    plain, biased, removed = (training.alpha(arm) for arm in ("plain", "bias in training", "bias in training only"))
    early = biased.steps < 400
    assert np.all(biased.alpha[early] < 0.2)
    assert biased.alpha[-1] > 0.4
    assert removed.alpha[-1] > plain.alpha[-1]

# %% [markdown]
# **Exercise 8.6.** A *reversal* is a negative exponent: the distance grows along the text. Does any of the three lines
# in the figure show one? Answer `"yes"` or `"no"`.

# %%
answer = ...
check("8.6", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# All lines are above the dotted one at 0.
#
# ```python
# answer = "no"
# ```
#
# Exponents tell how the difference falls, not whether the network uses it well. And this is one small network, one text
# and three seeds. The error bars are over seeds; look at them before you believe a bend.
# </details>

# %% [markdown]
# ## What you know now
#
# - A bias $\beta \log(1 + t/P)$ on the prompt's keys leaves the exponent $1 - \beta$. At $\beta = 1$ the decay stops.
#   Above, the influence comes back, late.
# - Reminders of density $R/M$ hold a plateau in proportion. A finite number of them does not.
# - In networks the bias works as predicted as long as attention is uniform. Training can undo it.
# - In code: `rm.PromptBias`, `rm.Reminders`, `relaymodel.control`, `rm.measure(..., bias=...)`.
#
# ## References
#
# - What stops the decay: section 7 of [the theory](../docs/theory.md).
# - A. Vaswani et al., *Attention is all you need*, NeurIPS 2017, arXiv:1706.03762.
