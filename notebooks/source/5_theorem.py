# %% [markdown]
# # 5. The theorem, and what happens without its conditions
#
# **What you will be able to do after this notebook**
#
# - state the bound on the influence of a prompt, with its four conditions;
# - prove that the relay model lies between two explicit bounds that meet as $t$ grows, so that the rate is *tight*;
# - test an inequality exactly, on random models, without rounding;
# - say what happens when each condition is dropped in turn.
#
# From the notebooks before you need: $D(t)$ is the influence of a prompt of $P$ tokens at continuation token $t$, which
# stands at position $N = P + t$. $L$ is the number of layers, $\lambda$ the relay strength of a layer, $\rho$ its
# residual strength. For uniform attention, $D = \frac PN \sum_{k<L} E_k h_k$. Here $h_k$ is the sum over all ways to
# pick $k$ of the numbers $\frac1{P+1}, \dots, \frac1N$ with repetition, and $E_k \ge 0$ is the sum of the strengths of
# paths that use attention more than $k$ times.

# %%
from fractions import Fraction

import numpy as np
from course import check
from hypothesis import given, settings
from hypothesis import strategies as st

import relaymodel as rm
from relaymodel import plotting
from relaymodel.bounds import rate
from relaymodel.control import bias_limit
from relaymodel.simulation import PromptBias

# %matplotlib inline

# %% [markdown]
# ## 5.1 The statement
#
# Run a pre-LN transformer on two texts that differ in the first $P$ tokens only. **Theorem.** The distance of the
# hidden states at continuation token $t$ is
#
# $$ O\Bigl( \frac{P\,(\log t)^{L-1}}{t} \Bigr), $$
#
# if
#
# 1. attention is causal, with residual connections;
# 2. the depth $L$ is **finite**, and stays the same as $t$ grows;
# 3. the attention logits are **bounded**, so that no key gets more than $\omega$ times the mean weight: $A_{ns} \le
#    \omega/n$;
# 4. the activations have a **floor** before each norm: they do not come arbitrarily close to zero.
#
# Why does this look like the relay model? Let $\delta_n$ be the distance of the two runs at position $n$ before a
# layer. The residual connection passes it on. Attention adds at most $\omega/n$ times a constant from every token
# before. A norm divides by the size of the activations, which the floor keeps away from zero, so it multiplies a
# distance by at most a constant. Together,
#
# $$ \delta'_n \;\le\; \rho\,\delta_n + \lambda\, \frac{\delta_1 + \dots + \delta_n}{n} . $$
#
# This *is* a relay layer, with $\le$ instead of $=$. So the relay model is not only an example. It is the worst case,
# and whatever we know about its $D(t)$ bounds the network.

# %% [markdown]
# ## 5.2 Two sides that meet
#
# Is the bound any good? A bound is *tight* if it cannot be improved. We show that the relay model itself reaches it.
# All we need is a bracket for $h_k$. Write $p_1 = \frac1{P+1} + \dots + \frac1N$ for the plain sum. Then
#
# $$ \boxed{\; \frac{p_1^k}{k!} \;\le\; h_k \;\le\; \frac{1}{k!} \prod_{i<k} \Bigl( p_1 + \frac{i}{P+1} \Bigr) \;} $$
#
# **Left.** Multiply out $p_1^k$. A product of $k$ numbers appears at most $k!$ times, once for each order of its
# factors. In $h_k$ each appears exactly once. So $p_1^k \le k!\,h_k$.
#
# **Right.** The generating function of $h_k$ is $\prod_n \frac{1}{1 - x/n}$. For $0 < a \le b$, each coefficient of
# $\frac{1}{1-ax}$ is at most that of $(1 - bx)^{-a/b}$. (The coefficient of $x^k$ is $a^k$ on the left, and
# $\frac{1}{k!} a (a + b) \cdots (a + (k-1)b)$ on the right, where each factor $a + ib$ is at least $(i+1)a$.) Put $b =
# \frac1{P+1}$, the largest of our numbers, and multiply over all $n$. The exponents add up to $p_1/b$, and the
# coefficient of $x^k$ is the right-hand side.
#
# Since the $E_k$ are not negative, the bracket for $h_k$ is one for $D$. The package has it: `rm.bracket`.

# %%
model = rm.RelayModel.uniform(prompt=10, depth=6, relay=1)
for t in (1, 10, 100, 1000):
    lower, upper = rm.bracket(model, Fraction(t))  # exact fractions
    D = rm.influence_fraction(model, t)
    assert lower <= D <= upper
    print(f"t = {t:5d}   lower/D = {float(lower / D):.4f}   upper/D = {float(upper / D):.4f}")

# %% [markdown]
# The comparisons in this cell are between fractions: no rounding, no tolerance. For larger $t$ a figure.
# The black line is $D(t)$ divided by itself.

# %%
plotting.plot_bracket(model, plotting.grid(1, 1e300)).figure

# %% [markdown]
# **Exercise 5.1.** Take $P = 1$, $N = 3$, $k = 2$. In notebook 2 you found $h_2 = 19/36 \approx 0.528$. What is the
# upper bound of the bracket? Give a `Fraction`.

# %%
answer = ...
check("5.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $p_1 = \frac12 + \frac13 = \frac56$, and $\frac{1}{P+1} = \frac12$.
#
# ```python
# p = Fraction(5, 6)
# answer = p * (p + Fraction(1, 2)) / 2
# ```
#
# The lower bound is $\frac12 \cdot \frac{25}{36} \approx 0.347$. So $0.347 \le 0.528 \le 0.556$.
# </details>

# %% [markdown]
# **Exercise 5.2.** For which largest depth $L$ are both sides equal at every $t$? (Which $h_k$ enter, and for which $k$
# are their two bounds the same?)

# %%
answer = ...
check("5.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# For $k = 0$ and $k = 1$ the two bounds agree: $1$ and $p_1$. With $L$ layers $k$ runs to $L - 1$.
#
# ```python
# answer = 2
# ```
# </details>

# %% [markdown]
# ## 5.3 The rate is attained
#
# How far apart are the two sides? The quotient of the products is at most
#
# $$ \frac{\text{upper}}{\text{lower}} \le \exp \frac{(L-1)(L-2)}{2\,(P+1)\,p_1} , $$
#
# and $p_1 \approx \log(N/P)$ grows without limit. So the quotient tends to 1. Slowly, as everything here:

# %% gallery
models = {f"$L = {L}$": rm.RelayModel.uniform(prompt=10, depth=L, relay=1) for L in (3, 6, 12)}
plotting.plot_tightness(models, plotting.grid(1, 1e300)).figure

# %% [markdown]
# Both sides are polynomials in $p_1$ of degree $L - 1$, times $P/N$. So $D$ really is as large as
# $P (\log t)^{L-1}/t$, up to a constant, and the theorem's rate cannot be improved. The constant is known as well:
#
# $$ D(t) \sim \frac{\prod_l \lambda_l}{(L-1)!} \cdot \frac{P (\log t)^{L-1}}{t} . $$

# %%
leading = rate(model)
print(f"(log t)^{leading.log_power} / t^{leading.exponent}")
for t in (1e6, 1e30, 1e300):
    print(f"t = {t:.0e}   D / leading term = {rm.influence(model, t) / float(leading.ball(t).mid()):.3f}")

# %% [markdown]
# **Exercise 5.3.** Three layers with $\lambda = 1/2$. The influence tends to $c\, P (\log t)^2 / t$. What is $c$?

# %%
answer = ...
check("5.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $\lambda^3 / 2!$.
#
# ```python
# answer = Fraction(1, 2) ** 3 / 2
# ```
# </details>

# %% [markdown]
# ## 5.4 A theorem as a test
#
# A proof may have a gap, and a program a bug. The library `hypothesis` draws random cases and looks for one that breaks
# a claim. If it finds one, it shrinks it to the simplest. Our claim is the bracket, on exact fractions.

# %%
fractions = st.fractions(min_value=0, max_value=3, max_denominator=20)
layers = st.lists(st.builds(rm.Layer, relay=fractions, residual=fractions), min_size=1, max_size=6)
layers = layers.filter(lambda stack: any(layer.relay for layer in stack))


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(prompt=st.integers(1, 30), t=st.integers(1, 60), layers=layers)
def the_bracket_holds(prompt, t, layers):
    model = rm.RelayModel(prompt, layers)
    lower, upper = rm.bracket(model, Fraction(t))
    assert lower <= rm.influence_fraction(model, t) <= upper


the_bracket_holds()
print("no counterexample among 60 random models")

# %% [markdown]
# ## 5.5 Without finite depth
#
# Now we drop the conditions one by one. First, let the depth grow while $t$ and $\lambda$ stay fixed.

# %%
for L in (1, 4, 8, 16, 32, 64):
    alpha = rm.local_exponent(rm.RelayModel.uniform(prompt=64, depth=L, relay=0.5), [1e4, 1e300])
    print(f"L = {L:2d}   local exponent at t = 10⁴: {alpha[0]:.3f}   at t = 10³⁰⁰: {alpha[1]:.3f}")

# %% [markdown]
# At $t = 10^4$, 64 layers have a local exponent of 0.0002: *the decay has stopped*. The theorem is not violated, since
# for each fixed $L$ the exponent does reach 1, at some astronomical $t$. But there is no bound that holds for all
# depths.
#
# There is a milder way to go deep: let the layers become weaker, $\lambda = c/L$, so that the total strength $c$ stays.
# For $L \to \infty$ the local exponent is then $1 - \sqrt{c/\log t} + \dots$. It still tends to 1, but more slowly than
# at any finite depth, where it is $1 - (L-1)/\log t$.

# %%
c, t = 2, 1e300
deep = rm.local_exponent(rm.RelayModel.uniform(prompt=64, depth=64, relay=c / 64), t)
print(f"64 layers of strength 2/64: {deep:.3f}    1 - sqrt(c / log t) = {1 - np.sqrt(c / np.log(t)):.3f}")
assert abs(deep - (1 - np.sqrt(c / np.log(t)))) < 0.02

# %% [markdown]
# **Exercise 5.4.** Infinitely many weak layers with total strength $c = 1$. By the formula $1 - \sqrt{c/\log t}$: what
# is
# $\log t$ where the local exponent is $0.9$?

# %%
answer = ...
check("5.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $\sqrt{1/\log t} = 0.1$.
#
# ```python
# answer = 1 / 0.1**2
# ```
# </details>

# %% [markdown]
# ## 5.6 Without bounded logits
#
# Give the prompt's keys a bonus in the attention logits that grows with $t$: a *bias* $b_t = \beta \log(1 + t/P)$.
# A key with logit bias $b$ counts like $e^b$ keys. So the prompt counts like $P (1 + t/P)^\beta$ tokens, and its share
# falls only like $t^{\beta - 1}$. The logits are not bounded any more.

# %%
model = rm.RelayModel.uniform(prompt=64, depth=6, relay=0.5)
biases = {rf"$\beta = {beta}$": PromptBias(beta) for beta in (0, 0.5, 1, 1.5)}
plotting.plot_bias(model, biases, plotting.grid(1, 1e8, 60)).figure

# %% [markdown]
# For $0 < \beta < 1$ the exponent is $1 - \beta$, without logarithms. At $\beta = 1$ the growth of the prompt's weight
# exactly compensates the growth of the text: **the decay stops** at a plateau. For $\beta > 1$ it even turns around.
# Notebook 8 comes back to this.

# %%
for beta in (Fraction(1, 2), 1, Fraction(3, 2)):
    result = bias_limit(model, PromptBias(beta))
    print(f"β = {float(beta)}   {result.phase:8s}   exponent {result.exponent}   limit of D {float(result.limit):.3f}")
assert bias_limit(model, PromptBias(Fraction(1, 2))).exponent == Fraction(1, 2)

# %% [markdown]
# **Exercise 5.5.** Which strength $\beta$ gives the exponent $1/4$?

# %%
answer = ...
check("5.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $1 - \beta = 1/4$.
#
# ```python
# answer = 3 / 4
# ```
# </details>

# %% [markdown]
# ## 5.7 Without a floor
#
# A norm divides a state $x$ by its size: $\varphi(x) = x/\sqrt{\overline{x^2} + \varepsilon}$, where $\overline{x^2}$
# is the mean of the squared components and $\varepsilon$ a small constant. If states become small, differences become
# large. Take one attention layer. It adds the difference $P/(P+t)$ to a state that has the size $s_t$ itself. Then
# apply the norm.


# %%
def behind_norm(size, epsilon, t, prompt=64, width=64):
    rng = np.random.default_rng(0)
    state, turn = rng.normal(size=(2, width))
    own = size[:, None] * state
    moved = own + (prompt / (prompt + t))[:, None] * turn

    def norm(x):
        return x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + epsilon)

    return rm.Curve(t, np.linalg.norm(norm(own) - norm(moved), axis=1))


t = np.geomspace(1, 1e6, 80)
small = 64 / (64 + t)
curves = {
    "size 1": behind_norm(np.ones_like(t), 1e-5, t),
    "size $P/(P+t)$, no floor": behind_norm(small, 0, t),
    "size $P/(P+t)$, $\\varepsilon = 10^{-5}$": behind_norm(small, 1e-5, t),
}
plotting.plot_curve(curves).figure

# %% [markdown]
# - States of size 1: the norm changes nothing essential, and the distance falls like $1/t$.
# - States that shrink like the difference itself: after the norm **nothing decays**. The difference is always the same
#   part of the state.
# - With $\varepsilon$, which every implementation has: the distance stays up until the states are as small as
#   $\sqrt\varepsilon \approx 0.003$, here near $t = 2 \cdot 10^4$. From there on the floor works, and it falls like
#   $1/t$ again.
#
# So the floor is a real condition, and its constant enters the bound.

# %%
last = {name: rm.fit_power_law(curve, t_min=2e5).alpha for name, curve in curves.items()}
print({name: round(alpha, 1) + 0.0 for name, alpha in last.items()})
assert abs(last["size 1"] - 1) < 0.05
assert abs(last["size $P/(P+t)$, no floor"]) < 0.01

# %% [markdown]
# ## What you know now
#
# - The distance of two runs is $O(P (\log t)^{L-1}/t)$, because each layer of a network is at most a relay layer.
# - The relay model reaches this rate, between two bounds that meet. So the theorem is tight.
# - Infinite depth, unbounded logits and vanishing activations each stop the decay. The conditions are needed.
# - In code: `rm.bracket`, `relaymodel.bounds.rate`, `relaymodel.control.bias_limit`.
#
# ## References
#
# - The bracket: section 4 of [the theory](../docs/theory.md); what stops the decay: section 7.
# - R. Xiong et al., *On layer normalization in the transformer architecture*, ICML 2020, arXiv:2002.04745:
#   pre-LN and post-LN blocks.
# - G. H. Hardy, *Divergent Series*, Oxford 1949.
