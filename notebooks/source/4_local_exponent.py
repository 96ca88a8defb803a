# %% [markdown]
# # 4. The local exponent: why straight lines lie
#
# **What you will be able to do after this notebook**
#
# - define the local exponent of a decay, and read it off a figure;
# - explain why a straight-line fit with $R^2 = 0.9996$ can be wrong by a third, with a tiny error bar;
# - say how slowly the exponent of the relay model rises to 1, and why;
# - extrapolate an exponent honestly, and recognise when that is impossible.
#
# From the notebooks before you need: $P$ is the length of the prompt, $t$ counts the tokens after it, $L$ is the number
# of layers, and the influence $D(t)$ of the prompt falls like $(\log t)^{L-1}/t$ for large $t$.

# %%
import numpy as np
from course import check, play

import relaymodel as rm
from relaymodel import plotting
from relaymodel.explore import Setting

# %matplotlib inline

# %% [markdown]
# ## 4.1 Definition
#
# If $D(t) = A\,t^{-\alpha}$, then $\log D$ is a straight line in $\log t$, and its slope is $-\alpha$. If $D$ is not a
# power law, the slope still exists at each $t$. This is the **local exponent**:
#
# $$ \alpha(t) = - \frac{d \log D}{d \log t}. $$
#
# It says how $D$ falls *around* $t$: from $t$ to $2t$, $D$ shrinks by about $2^{-\alpha(t)}$.
#
# For one layer $D = \lambda P/(P+t)$, and the derivative gives
#
# $$ \alpha(t) = \frac{t}{P+t} \qquad (L = 1). $$
#
# It is near 0 for $t \ll P$, where most of the text is still prompt, one half at $t = P$, and tends to 1.

# %%
print("L = 1:", rm.derive(1).local_exponent)
model = rm.RelayModel.uniform(prompt=64, depth=1, relay=0.5)
print(rm.local_exponent(model, [6.4, 64, 640]).round(3))

# %% [markdown]
# **Exercise 4.1.** One layer behind a prompt of $P = 64$ tokens. At which $t$ is the local exponent $0.9$?

# %%
answer = ...
check("4.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $t = 0.9\,(64 + t)$, so $0.1\,t = 57.6$.
#
# ```python
# answer = 0.9 * 64 / 0.1
# ```
# </details>

# %% [markdown]
# And with more layers? Here are the local exponents of uniform models with $P = 10$ and $\lambda = 1$.
# Note the horizontal axis: it runs to $10^{300}$.

# %% gallery
models = {f"$L = {L}$": rm.RelayModel.uniform(prompt=10, depth=L, relay=1) for L in (1, 2, 6, 12)}
plotting.plot_local_exponent(models, plotting.grid(1, 1e300)).figure

# %% [markdown]
# All of them rise to 1. None of them is constant anywhere: **there is no power law at any t.** And the deeper the
# model, the slower the rise. At a million tokens, 12 layers are at 0.49.

# %%
for L in (2, 6, 12):
    alpha = rm.local_exponent(rm.RelayModel.uniform(10, L, 1), [1e2, 1e4, 1e6])
    print(f"L = {L:2d}   α(10²), α(10⁴), α(10⁶) = {alpha.round(3)}")

# %% [markdown]
# ## 4.2 A good fit
#
# Now pretend that you do not know the formula. You have measured a curve up to $t = 10^6$. You plot it on log-log
# paper, and it looks straight from $t = 10^4$ on. So you fit a straight line, as everyone does.

# %%
curve = rm.simulate(rm.RelayModel.uniform(prompt=10, depth=6, relay=1), steps=10**6)
window = curve.window(1e4, 1e6)
x, y = np.log(window.t), np.log(window.distance)
slope, start = np.polyfit(x, y, 1)
residual = y - (slope * x + start)
r_squared = 1 - np.var(residual) / np.var(y)
textbook = np.sqrt(np.sum(residual**2) / (len(x) - 2) / np.sum((x - x.mean()) ** 2))
print(f"α = {-slope:.3f} ± {textbook:.4f}   R² = {r_squared:.4f}")
assert r_squared > 0.9995
assert textbook < 0.002

# %% [markdown]
# An exponent of $0.669 \pm 0.001$, with $R^2 = 0.9996$. It would look good in a paper. But we know that this curve has
# the limit 1. What went wrong? Let us fit other windows.

# %%
for low, high in ((1e2, 1e4), (1e3, 1e5), (1e4, 1e6)):
    law = rm.fit_power_law(curve, t_min=low, t_max=high)
    print(f"t = {low:.0e} to {high:.0e}:  α = {law.alpha:.3f}   textbook error {law.naive_stderr:.4f}")

# %% [markdown]
# Each window has its own exponent, and they differ by thirty times the textbook error. The fit measures the *window*.
# The textbook error assumes that the points scatter independently around a straight line. Here they do not scatter:
# they bend. Three hundred points on a smooth bend give a tiny error and no information about it.
#
# `rm.fit_power_law` therefore does two more things. It tests whether the window bends more than its noise allows. And
# its own error bar, `stderr`, includes the drift of the exponent across the window.

# %%
law = rm.fit_power_law(curve, t_min=1e4, t_max=1e6)
print(f"α = {law.alpha:.2f} ± {law.stderr:.2f}   textbook error {law.naive_stderr:.4f}   adequate: {law.adequate}")
assert not law.adequate
plotting.plot_power_law(curve, law).figure

# %% [markdown]
# Not adequate: this is not a power law. Move the ends of the window on the page, say two decades at a time. Every
# window looks straight, and every window says something else.

# %%
early = rm.fit_power_law(curve, t_min=100, t_max=10_000)
play(plotting.plot_power_law(curve, early).figure, Setting(prompt=10, depth=6, relay=1, window=(100, 10_000)))

# %% [markdown]
# **Exercise 4.2.** Which of these would convince you that a curve is a power law: `"r2"` (a high $R^2$), `"error"`
# (a small textbook error), or `"windows"` (the same exponent in different windows)?

# %%
answer = ...
check("4.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $R^2$ and the textbook error were excellent above, and the exponent was wrong. A power law has the same exponent in
# every window.
#
# ```python
# answer = "windows"
# ```
# </details>

# %% [markdown]
# ## 4.3 How slowly does it rise?
#
# Take the logarithm of the leading term $D \sim A (\log t)^{L-1}/t$, where $A$ is a constant:
#
# $$ \log D = \log A + (L-1) \log\log t - \log t . $$
#
# Differentiate by $\log t$. The derivative of $\log \log t$ by $\log t$ is $1/\log t$, so
#
# $$ \boxed{\; \alpha(t) = 1 - \frac{L-1}{\log t} + \dots \;} $$
#
# The correction falls like $1/\log t$. That is *very* slow: to halve it, you must square $t$. The package derives the
# series, here for three layers:

# %%
print(rm.derive(3).exponent_series(2))

# %% [markdown]
# **Exercise 4.3.** Six layers. By this leading term, at which $t$ is the local exponent $0.9$?
# ($\log$ is the natural logarithm. To 1 %.)

# %%
answer = ...
check("4.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $5/\log t = 0.1$, so $\log t = 50$.
#
# ```python
# answer = np.exp(50)
# ```
#
# That is $5 \cdot 10^{21}$ tokens. The exact value there is 0.908 for $P = 10$, $\lambda = 1$: the leading term is a
# good guide. No experiment will ever see the limit. It can only be inferred.
# </details>

# %%
exact = rm.local_exponent(rm.RelayModel.uniform(prompt=10, depth=6, relay=1), np.exp(50))
print(f"exact local exponent at t = e^50: {exact:.3f}")

# %% [markdown]
# ## 4.4 Extrapolating
#
# How do you get from values at finite $t$ to the limit? You need to know in what the correction is small. Suppose you
# guess wrongly that it falls like $1/t$. Then *Richardson extrapolation*, $2\alpha(2t) - \alpha(t)$, removes it. Here
# are exact local exponents from $t = 2^{20}$ to $2^{30}$, and both guesses.

# %%
t = 2.0 ** np.arange(20, 31)
alpha = rm.local_exponent(rm.RelayModel.uniform(prompt=10, depth=6, relay=1), t)
print(f"last value:                {alpha[-1]:.4f}")
print(f"Richardson, powers of 1/t: {2 * alpha[-1] - alpha[-2]:.4f}")
for degree in (1, 2, 3, 4):
    in_logs = np.polynomial.polynomial.polyfit(1 / np.log(10 + t), alpha, degree)
    print(f"powers of 1/log, up to {degree}: {in_logs[0]:.4f}")
assert abs(in_logs[0] - 1) < 0.005

# %% [markdown]
# With the wrong variable, the extrapolated value hardly moves. With the right one, each degree comes closer to 1.
# (We used $\log(P + t)$ for $\log t$. The limit is the same, and it is smoother where $t$ is not much larger than $P$.)
#
# `rm.extrapolate_exponent` does this for a model or for a measured curve. Its error bar has two parts: the noise, and
# how far the value still moves with the degree. So it knows about the series it cut. Under noise many series fit alike,
# and the error bar holds them all.

# %%
limit = rm.extrapolate_exponent(curve)
print(f"limit: {limit.value:.3f} ± {limit.stderr:.3f}   (powers of 1/log up to {limit.degree})")
assert abs(limit.value - 1) < 2 * limit.stderr

# %% [markdown]
# The curve that gave $0.669$ in a straight-line fit gives a limit of 1 now, and the error bar covers the truth.
#
# ## 4.5 Noise, and honest refusals
#
# The curve above was free of noise. Measured curves are not. Let us add 2 % of noise to each point.

# %%
rng = np.random.default_rng(1)
noisy = rm.Curve(curve.t, curve.distance * np.exp(0.02 * rng.normal(size=len(curve))), provenance=curve.provenance)
limit = rm.extrapolate_exponent(noisy)
print(f"limit from the noisy curve: {limit.value:.2f}, with 95 % between {limit.lower:.2f} and {limit.upper:.2f}")
assert limit.lower < 1 < limit.upper
assert limit.upper - limit.lower > 0.2

# %% [markdown]
# Two per cent of noise, six decades of $t$, and the limit is known to some tenths only. The interval reaches further up
# than down, since an exponent that still rises can be hidden by noise. The straight-line fit has a tiny error bar. It
# is more precise, and wrong. And with a short curve the answer is a refusal, with what could be found:

# %%
from relaymodel.inference import UnderdeterminedError

try:
    rm.extrapolate_exponent(curve.window(1000, 8000))
except UnderdeterminedError as refusal:
    print(refusal)
    print(f"What could be found: α = {refusal.partial.alpha:.2f} ± {refusal.partial.stderr:.2f} in this window.")

# %% [markdown]
# The local exponents of the noisy curve, estimated with error bars, beside the exact ones:

# %%
model = rm.RelayModel.uniform(prompt=10, depth=6, relay=1)
axes = plotting.plot_local_exponent({"exact": model}, plotting.grid(1, 1e6))
plotting.plot_local_exponent(rm.estimate_exponent(noisy), label="from the noisy curve", ax=axes).figure

# %% [markdown]
# **Exercise 4.4.** A paper reports "$\alpha = 0.55 \pm 0.01$, fitted from $t = 100$ to $t = 2000$". The model behind it
# is a relay model with uniform attention. What is the limit of its local exponent?

# %%
answer = ...
check("4.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# With uniform attention, $g = 0$, the limit is 1 at any depth and strength. The fit describes the window.
#
# ```python
# answer = 1
# ```
# </details>

# %% [markdown]
# **Exercise 4.5.** By the leading term $\alpha \approx 1 - (L-1)/\log t$: which depth $L$ gives a local exponent of
# about
# $0.5$ at $t = e^{10} \approx 22\,000$?

# %%
answer = ...
check("4.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $(L - 1)/10 = 0.5$.
#
# ```python
# answer = 1 + 0.5 * 10
# ```
#
# So an exponent of one half need not be a law of its own. Six layers and a finite window look just like it.
# </details>

# %% [markdown]
# ## What you know now
#
# - The relay model has no power law at any $t$. Its local exponent rises to 1 like $1 - (L-1)/\log t$.
# - A fit measures its window. A high $R^2$ and a small textbook error do not show that a law holds.
# - Extrapolate in $1/\log t$, state the window, and believe a refusal.
# - In code: `rm.local_exponent`, `rm.fit_power_law`, `rm.estimate_exponent`, `rm.extrapolate_exponent`.
#
# ## References
#
# - The local exponent: section 3 of [the theory](../docs/theory.md).
# - A. Clauset, C. R. Shalizi and M. E. J. Newman, *Power-law distributions in empirical data*, SIAM Review 51 (2009),
#   arXiv:0706.1062: the same warning about straight lines on log-log paper, for distributions.
