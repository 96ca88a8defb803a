# %% [markdown]
# # 9. Relative position: heads that look near
#
# **What you will be able to do after this notebook**
#
# - describe a head by the relative positions it looks at, and write a model with several heads and a sink;
# - say why heads that favour near tokens forget faster, and why the theorem's rate holds for them all the same;
# - read off the constant of the decay: how much attention falls on the very beginning;
# - explain with one model and one bias why an untrained network stops forgetting and a trained one turns around;
# - fit such a model to a curve, and say what the curve cannot tell.
#
# From the notebooks before you need: a layer has a residual strength $\rho$ and a relay strength $\lambda$, $D(t)$ is
# the influence of a prompt of $P$ tokens at token $t$ after it, and $\alpha(t)$ is its local exponent. Uniform
# attention gives $D \sim \prod \lambda\, P\, (\log t)^{L-1} / ((L-1)!\, t)$.

# %%
from fractions import Fraction

import numpy as np
from course import check, play

import relaymodel as rm
from relaymodel import plotting
from relaymodel.explore import Setting

# %matplotlib inline

# %% [markdown]
# ## 9.1 Where a head looks
#
# So far a head took all keys alike. Heads of trained networks favour *near* keys. Let the weight of a key at distance
# $d$ fall like $d^{-\gamma}$. The number $\gamma < 1$ is the *recency* of the head: 0 is uniform attention, a positive
# $\gamma$ favours near keys, a negative one far keys.
#
# Take the reader at $n$ and write $u = s/n$ for the *relative* position of a key. However long the text is, the
# attention is spread over $u$ in the same way. Its density is that of a Beta distribution:
#
# $$ p(u) = (1-\gamma)\,(1-u)^{-\gamma} . $$


# %%
def density(ax, recencies=(-1, 0, 0.5, 0.9)):
    u = np.linspace(0, 0.995, 400)
    for gamma in recencies:
        ax.plot(u, (1 - gamma) * (1 - u) ** -gamma, label=rf"$\gamma = {gamma}$")
    ax.set(xlabel="relative position of the key, $u = s/n$", ylabel="density of attention $p(u)$", ylim=(0, 3))
    ax.legend()


plotting.panels(density)

# %% [markdown]
# In code it is `rm.Layer(relay, recency=...)`. The weights are chosen so that all sums are exact; their means are
# rational numbers. Here is what the third token gets from the first one:

# %%
for gamma in (0, Fraction(1, 2), Fraction(9, 10)):
    head = rm.Head(1, recency=gamma)
    print(f"γ = {gamma!s:5s} mean of 1, 0, 0 at the three positions:", *head.means([1, 0, 0]))

# %% [markdown]
# **Exercise 9.1.** The density at the beginning, $p(0)$, will be important. What is it for $\gamma = 3/4$?

# %%
answer = ...
check("9.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# At $u = 0$ the second factor is 1, so $p(0) = 1 - \gamma$. The head gives the beginning a quarter of what uniform
# attention gives it.
#
# ```python
# answer = 1 - 3 / 4
# ```
# </details>

# %% [markdown]
# ## 9.2 The same solution
#
# Nothing has to be solved again. All matrices that depend on $u$ alone commute, as the causal mean did, and have the
# same eigenvectors. At position $n$ a head has the eigenvalue $E[u^{n-1}]$, the mean over its distribution. So a stack
# of layers is again one function,
#
# $$ f(z) = \prod_l \Bigl( \rho_l + \sum_h \lambda_h\, E_h[u^{z-1}] \Bigr), \qquad
#    E[u^{z-1}] = \frac{\Gamma(2-\gamma)\,\Gamma(z)}{\Gamma(z+1-\gamma)} , $$
#
# and several heads in one layer simply add. Do two different heads really commute? Let us see:

# %%
near, far = rm.Layer(1, recency=Fraction(1, 2)), rm.Layer(1, recency=-2)
one, other = (rm.RelayModel(2, order).differences(7) for order in ([near, far], [far, near]))
print("near, then far:", *one)
print("far, then near:", *other)
assert one == other

# %% [markdown]
# **Exercise 9.2.** The eigenvalue at position $n$ is the weight of token $n$ on itself. What is it at $n = 2$ for
# $\gamma = 1/2$? (Use the formula, and $\Gamma(x+1) = x\,\Gamma(x)$.)

# %%
answer = ...
check("9.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $\Gamma(2) = 1$, and $\Gamma(3-\gamma) = (2-\gamma)\,\Gamma(2-\gamma)$, so that $1/(2-\gamma)$ is left. Two thirds:
# more than the half of uniform attention, because the head looks near.
#
# ```python
# answer = Fraction(2, 3)
# ```
# </details>

# %% [markdown]
# ## 9.3 Faster, but not for ever
#
# Heads that look near see less of the beginning of the text. They relay less of the prompt, and the exponent is closer
# to 1, that of plain dilution. The figure shows it for six layers.

# %% gallery
models = {rf"$\gamma = {gamma}$": rm.RelayModel.uniform(64, 6, 0.5, recency=gamma) for gamma in (-1, 0, 0.5, 0.7, 0.9)}
plotting.plot_local_exponent(models, plotting.grid(1, 1e12, 80)).figure

# %% [markdown]
# Each curve lies above the one before, at every $t$. But all of them go to the same limit, 1. A network whose exponent
# rises in training, from .3 to .7 say, may do nothing else than look nearer: no law is broken, only the window is seen
# differently. On the page the slider of the recency shows it.

# %%
both = {rf"$\gamma = {gamma}$": rm.RelayModel.uniform(64, 6, 0.5, recency=gamma) for gamma in (0, 0.8)}
play(
    plotting.plot_influence(both, plotting.grid(1, 1e6, 60)).figure,
    Setting(depth=6, relay=0.5, recency=0.8),
)

# %% [markdown]
# **Exercise 9.3.** Six layers, $\lambda = 1/2$, $P = 64$, $\gamma = 0.8$. What is the local exponent at $t = 1000$?

# %%
answer = ...
check("9.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# ```python
# answer = rm.local_exponent(rm.RelayModel.uniform(64, 6, 0.5, recency=0.8), 1000)
# ```
#
# That is .83, and .51 without recency.
# </details>

# %% [markdown]
# ## 9.4 The constant
#
# Why is the limit 1? Large $t$ is the neighbourhood of $z = 0$. There a head is $p(0)/z$: of its whole profile only the
# density at the beginning is left. Uniform attention has $p(0) = 1$. So
#
# $$ D(t) \sim \prod_l \Bigl(\sum_h \lambda_h\, p_h(0)\Bigr) \frac{P\,(\log t)^{L-1}}{(L-1)!\; t} . $$
#
# Every head that gives the beginning a finite part of its attention obeys the theorem's rate. Only the constant tells
# them apart. `derive` knows it:

# %%
stack = rm.derive(2, relay=Fraction(1, 2), recency=Fraction(3, 4))
print("D ~", stack.limit.leading)
for t in (1e3, 1e30, 1e300):
    two = [rm.influence(rm.RelayModel.uniform(64, 2, 0.5, recency=gamma), t) for gamma in (0, 0.75)]
    print(f"t = {t:.0e}   D with γ = 3/4, over D with γ = 0: {two[1] / two[0]:.4f}")

# %% [markdown]
# The quotient goes to $(1/4)^2 = 0.0625$, at the speed of $1/\log t$.
#
# **Exercise 9.4.** Three layers, each of two heads: $\lambda = 0.3$ with $\gamma = 3/4$, and $\lambda = 0.2$ with
# $\gamma = -1$. Which number stands before $P\,(\log t)^2/t$?

# %%
answer = ...
check("9.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The heads of a layer add up to $0.3 \cdot 0.25 + 0.2 \cdot 2$, three layers multiply, and $(L-1)! = 2$.
#
# ```python
# answer = (0.3 * 0.25 + 0.2 * 2) ** 3 / 2
# ```
#
# The head that looks far makes 84 % of the constant of a layer.
# </details>

# %% [markdown]
# ## 9.5 One model, one bias
#
# Notebook 8 gave the prompt's keys the bias $\beta \log(1 + t/P)$. Held against networks, the same bias stops the
# decay of an untrained one, and lets $D$ *grow* in a trained one. Two laws? Let us take one model with and without
# recency.

# %%
uniform, recent = (rm.RelayModel.uniform(64, 12, 0.2, recency=gamma) for gamma in (0, 0.9))
t = np.unique(np.rint(np.geomspace(16, 1024, 40)))
for beta in (0, 1, 2, 3):
    slopes = []
    for model in (uniform, recent):
        D = rm.simulate(model, 1024, bias=rm.PromptBias(beta), samples=t).distance
        slopes.append(-np.polyfit(np.log(t), np.log(D), 1)[0])
    print(f"β = {beta}   exponent without recency {slopes[0]:5.2f}, with γ = 0.9 {slopes[1]:5.2f}")

# %% [markdown]
# With $\beta = 2$ uniform attention stands still: the prompt has nearly all of the attention at once, and keeps it. The
# head that looks near gives the prompt little at first. The same bias raises this share through the window. So $D$
# comes back: a negative exponent.


# %%
def under(ax, model, title):
    biases = {rf"$\beta = {beta}$": rm.PromptBias(beta) for beta in (0, 1, 2)}
    plotting.plot_bias(model, biases, plotting.grid(1, 1024, 60), ax=ax)
    ax.text(0.05, 0.08, title, transform=ax.transAxes)


plotting.panels(lambda ax: under(ax, uniform, "uniform"), lambda ax: under(ax, recent, r"$\gamma = 0.9$"))

# %% [markdown]
# **Exercise 9.5.** $\beta = 2$, $\gamma = 0.9$, 12 layers, $\lambda = 0.2$, $P = 64$. At which $t$ is $D$ smallest? (A
# whole number below 1024. `rm.simulate` takes `samples=range(1, 1025)`.)

# %%
answer = ...
check("9.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# ```python
# every = rm.simulate(recent, 1024, bias=rm.PromptBias(2), samples=range(1, 1025))
# answer = int(every.t[np.argmin(every.distance)])
# ```
#
# Before it the decay goes on, behind it the bias wins.
# </details>

# %% [markdown]
# ## 9.6 What a curve tells
#
# Now the other way round. Here is a curve, with 1 % noise, of a model with $\gamma = 0.7$. `rm.fit` finds the recency
# if it is told to (`recency=None`), here with the depth held:

# %%
truth = rm.RelayModel.uniform(64, 12, 0.2, recency=0.7)
t = np.unique(np.rint(np.geomspace(16, 1024, 40)))
noise = np.exp(0.01 * np.random.default_rng(1).standard_normal(t.size))
curve = rm.Curve(t, rm.influence(truth, t) * noise, provenance={"prompt": "64"})
found = rm.fit(curve, depth=12, recency=None)
print("relay  ", found.relay, "\nrecency", found.recency, "\n", found.identifiability)

# %% [markdown]
# The intervals are wide, and the fit says why: a strong relay that looks near is like a weak one that looks
# everywhere. At large $t$ only $\lambda\,p(0)$ counts. So is the fit worth nothing? Ask it for what was never measured,
# the same network under a bias:

# %%
plain = rm.fit(curve, depth=12)
D = rm.simulate(truth, 1024, bias=rm.PromptBias(2), samples=t).distance
for name, fitted in (("with recency", found), ("uniform", plain)):
    worst = np.abs(fitted.predict(t, bias=2) / D - 1).max()
    print(f"{name:13s} adequate: {fitted.adequate!s:6s} worst error of D under β = 2: {100 * worst:4.1f} %")

# %% [markdown]
# The parameters are not known well, and what follows from them is.
#
# **Exercise 9.6.** One fit says $\lambda = 0.4$ and $\gamma = 0.85$. Another model has $\lambda = 0.2$ and the same
# constant at large $t$. What is its $\gamma$?

# %%
answer = ...
check("9.6", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $0.4 \cdot 0.15 = 0.06 = 0.2\,(1 - \gamma)$.
#
# ```python
# answer = 1 - 0.4 * 0.15 / 0.2
# ```
# </details>

# %% [markdown]
# ## 9.7 Sinks
#
# Trained heads also rest on the very first token. If that token carries the difference of the prompts, a part of it
# arrives undiluted: a *sink* of weight $\sigma$ adds $\sigma x_1$ at every position, and $D$ falls to a plateau, the
# value on the prompt less $f(1)$. (Measured sinks carry almost no difference. There a sink only takes attention away.)

# %%
sunk = rm.RelayModel.uniform(64, 2, 1, sink=Fraction(1, 10))
print("on the prompt:", sunk.saturation, "  plateau:", sunk.plateau)
print("D(1e3), D(1e30):", rm.influence(sunk, [1e3, 1e30]).round(6))

# %% [markdown]
# **Exercise 9.7.** Two layers with $\rho = \lambda = \sigma = 1$. At which value does $D$ stay?

# %%
answer = ...
check("9.7", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# On the prompt each layer multiplies by $1 + 1 + 1$, and $f(1) = 2 \cdot 2$: sinks do not belong to $f$.
#
# ```python
# answer = 3**2 - 2**2
# ```
# </details>

# %% [markdown]
# ## What you know now
#
# - Heads that depend on relative position are solved by the same function $f$; several heads add.
# - Recency raises the exponent of every window and leaves the limit at 1; the constant is the density at the beginning.
# - One bias stops uniform attention and reverses attention that looks near.
# - In code: `rm.Head`, `rm.Layer(..., recency=, sink=)`, `rm.fit(..., recency=None)`, `rm.fit_heads`.
#
# ## References
#
# - Heads, sinks and the constant: section 10 of [the theory](../docs/theory.md); biases: section 7.
# - G. Xiao et al., *Efficient streaming language models with attention sinks*, 2023, arXiv:2309.17453.
# - O. Press, N. A. Smith, M. Lewis, *Train short, test long: attention with linear biases enables input length
#   extrapolation*, 2021, arXiv:2108.12409.
