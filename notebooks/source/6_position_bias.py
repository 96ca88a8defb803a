# %% [markdown]
# # 6. Position bias: which tokens are heard
#
# **What you will be able to do after this notebook**
#
# - compute the weight of every source token on a later token, through all layers;
# - explain why causal attention with residual connections favours the first tokens and the last one: a U shape;
# - use the continuum limit, and say when it is wrong;
# - say what this has to do with "lost in the middle", and what it does not.
#
# From the notebooks before you need: a relay layer turns $x_n$ into $\rho\,x_n + \lambda \cdot$ mean of $x_1, \dots,
# x_n$.
# $L$ layers make a stack. So far we asked how much of a whole prompt arrives. Now we ask where it comes from.

# %%
import numpy as np
import sympy
from course import check

import relaymodel as rm
from relaymodel import plotting

# %matplotlib inline

# %% [markdown]
# ## 6.1 The weight of one token
#
# The stack is linear. So the state at position $n$ is a weighted sum of all sources $s \le n$, and
# `rm.token_influence(model, source, target)` is the weight. (The prompt length of the model plays no role here.)
#
# In this notebook we choose $\rho = 1 - a$ and $\lambda = a$: each layer mixes the part $a$ of the mean with the part
# $1 - a$ of the token itself. Then all weights on a token add up to 1, and each can be read as a share.


# %%
def mixing(depth, a=0.5):
    return rm.RelayModel.uniform(prompt=1, depth=depth, relay=a, residual=1 - a)


def shares(model, n):
    return rm.token_influence(model, np.arange(1, n + 1), n)


for depth in (1, 2, 12):
    weights = shares(mixing(depth), 1000)
    assert np.isclose(weights.sum(), 1)
    print(f"L = {depth:2d}   first token {weights[0]:.4f}   token 500 {weights[499]:.6f}   itself {weights[-1]:.4f}")

# %% [markdown]
# With one layer all tokens but the last get the same weight. With twelve layers the *first* of a thousand tokens has
# 30 % of all the influence. Nobody trained this. It comes from the causal mask alone: the first token can be read by
# everyone, and everyone who has read it passes it on. The relay path of notebook 1 again.
#
# **Exercise 6.1.** One layer, $a = 1/2$, position $n = 1000$. What share does the token have on itself? (It gets the
# residual part, and it is also part of the mean.)

# %%
answer = ...
check("6.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $1 - a$ from the residual connection, and $a/n$ as one of the $n$ tokens of the mean.
#
# ```python
# answer = 1 / 2 + 1 / 2 / 1000
# ```
# </details>

# %% [markdown]
# ## 6.2 The U shape
#
# Here is the whole profile at $n = 1000$. The vertical axis is $n$ times the weight, so that uniform weights would be
# at
# 1. Only the dots at the right are drawn as they are: a dot is the weight of the token on itself, *not* multiplied by
# $n$. (At $L = 4$ a token gives 6 % to itself, and 0.025 % to each of its neighbours.)

# %% gallery
models = {f"$L = {L}$": mixing(L) for L in (1, 2, 4, 12)}
plotting.plot_token_influence(models, 1000).figure

# %% [markdown]
# Seen from the right: at the very end one heavy token, the reader itself. Then a valley. Then a rise without end
# towards the first token. Sum the weights in ten equal parts of the text, and you see a U, as long as $L$ is not large:

# %%
for depth in (2, 4, 12):
    tenths = shares(mixing(depth), 1000).reshape(10, 100).sum(axis=1)
    print(f"L = {depth:2d}  ", "  ".join(f"{100 * share:5.2f}" for share in tenths), " %")

# %% [markdown]
# - **Early tokens** gain from depth: more layers, more relays. This is *primacy*.
# - **The last token** keeps $(1-a)^L$ of itself by the residual connections: *recency*. It is a single token.
# - **The middle** has neither. Its share falls quickly with depth.
#
# At $L = 6$, a small $a$ means a strong residual connection, and so a strong last token.

# %%
plotting.plot_token_influence({f"$L = 6$, $a = {a}$": mixing(6, a) for a in (0.05, 0.2, 0.5, 0.9)}, 1000).figure

# %% [markdown]
# **Exercise 6.2.** With $a = 1/2$: how many layers does it take until the residual connections alone leave less than
# 1 % of a token to itself, $(1-a)^L < 0.01$? Give the smallest whole $L$.

# %%
answer = ...
check("6.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $2^{-6} = 0.0156$ and $2^{-7} = 0.0078$.
#
# ```python
# answer = 7
# ```
# </details>

# %% [markdown]
# ## 6.3 The continuum
#
# For long texts one would like a smooth curve. Let $r = s/n$ be the relative position of the source, and $q(r)$ the
# density of the influence over $r$. So a source at $s$ has the weight $q(s/n)/n$. With $e_m$ the total strength of all
# paths that use attention in exactly $m$ layers,
#
# $$ q(r) = \sum_{m \ge 1} e_m \frac{(\log 1/r)^{m-1}}{(m-1)!}, \qquad
#    \text{and the weight } (1-a)^L \text{ at } r = 1 . $$
#
# Why the logarithms? One step of attention spreads the influence evenly over $r$, density 1. Two steps go through an
# intermediate token $u$ between $s$ and $n$, and $\int_r^1 \frac{dv}{v} = \log \frac 1r$. Each further step integrates
# once more.

# %%
density = rm.derive(mixing(3)).continuum_density
print("q(r) =", density.density, "   weight at r = 1:", density.atom)

# %% [markdown]
# **Exercise 6.3.** Two layers, $a = 1/2$. What is $q(r)$? Write it in SymPy, with the symbol `r`, and with
# `sympy.log(1 / r)`. (First find $e_1$ and $e_2$.)

# %%
r = sympy.symbols("r", real=True)
answer = ...
check("6.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $e_1 = 2\,a(1-a) = \frac12$: attention in one of two layers. $e_2 = a^2 = \frac14$.
#
# ```python
# answer = sympy.Rational(1, 2) + sympy.Rational(1, 4) * sympy.log(1 / r)
# ```
# </details>

# %% [markdown]
# ## 6.4 Exact against continuum
#
# How good is it? The figure compares the exact weights at $n = 10^6$ with the density. They agree over most of the
# range. But look at the left end, the first tokens.

# %%
plotting.plot_continuum(mixing(12), 10**6).figure

# %% [markdown]
# For the very first token the exact weight is far above the density at $r = 1/n$. But that is not a fair comparison:
# the density rises without end within the first cell, from $r = 0$ to $1/n$. So take the density's weight of the whole
# cell.

# %%
n = 10**6
density = rm.derive(mixing(12)).continuum_density
P, t = rm.derive(1).P, rm.derive(1).t
cell = float(density.influence.subs({P: 1, t: n - 1}))  # the integral of q from 0 to 1/n
exact = rm.token_influence(mixing(12), 1, n)
print(f"first of a million, 12 layers: exact {exact:.4f}, continuum {cell:.4f}, {100 * (cell / exact - 1):.0f} % more")
assert 0.13 < cell / exact - 1 < 0.15

# %% [markdown]
# The continuum, integrated over the token's cell, is 14 % off at a million tokens (its density at $1/n$ itself is 39 %
# low). It is *not* a matter of longer texts: the first tokens are always only
# one, two, three, and never a continuum. If a statement is about the first token, use exact weights.
#
# **Exercise 6.4.** Compare the exact weight of the *tenth* token with the density at its middle, $q(9.5/n)/n$, for $L =
# 12$,
# $a = 1/2$, $n = 10^6$. Is the continuum here off by more than 5 %? Answer `"yes"` or `"no"`.

# %%
answer = ...
check("6.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Compute both:
#
# ```python
# q = float(density.density.subs(density.variable, sympy.Rational(19, 2 * n))) / n
# answer = "yes" if abs(q / rm.token_influence(mixing(12), 10, n) - 1) > 0.05 else "no"
# ```
#
# The continuum becomes good quickly. Only the very first tokens are out of its reach.
# </details>

# %% [markdown]
# ## 6.5 Lost in the middle
#
# Liu et al. (2023) found that language models use a fact well if it stands at the beginning or at the end of their
# context, and badly if it stands in the middle. Chowdhury (2026) points out that the U shape is there *before
# training*: it follows from the causal mask and the residual connections, by the density above.
#
# Be careful with the step from one to the other:
#
# - The weights here are those of *uniform* attention. A trained model attends by content, and can undo the bias.
# - Recency in this model is a single token. Real models have broader recency, from training and position encodings.
#   In the relay model a layer with a large position exponent $g$ gives one. Here is a stack with such a layer:

# %%
plain = rm.RelayModel(1, [rm.Layer(0.5, 0.5)] * 6)
recent = rm.RelayModel(1, [rm.Layer(0.5, 0.5)] * 5 + [rm.Layer(0.5, 0.5, position=40)])
for name, model in (("six uniform layers     ", plain), ("one of them with g = 40", recent)):
    tenths = shares(model, 1000).reshape(10, 100).sum(axis=1)
    print(name, "  ", "  ".join(f"{100 * share:5.2f}" for share in tenths), " %")

# %% [markdown]
# **Exercise 6.5.** Which mechanism makes the left arm of the U: `"residual"`, `"relay"` or `"softmax"`?

# %%
answer = ...
check("6.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# ```python
# answer = "relay"
# ```
#
# With a single layer there is no left arm. It comes from tokens that have read the beginning and are read themselves.
# </details>

# %% [markdown]
# ## What you know now
#
# - Uniform causal attention favours the first tokens, more with depth, and keeps a part of the last one.
# - The density over relative positions is a polynomial in $\log 1/r$. It fails at the first tokens.
# - In code: `rm.token_influence`, `rm.derive(...).continuum_density`, `plotting.plot_continuum`.
#
# ## References
#
# - Token weights: section 2 of [the theory](../docs/theory.md); the continuum: section 6.
# - N. F. Liu et al., *Lost in the middle: how language models use long contexts*, 2023, arXiv:2307.03172.
# - B. D. Chowdhury, *Lost in the middle at birth: an exact theory of transformer position bias*, 2026,
#   arXiv:2603.10123.
