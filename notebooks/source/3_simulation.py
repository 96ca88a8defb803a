# %% [markdown]
# # 3. Simulation at large t, and how floating point goes wrong
#
# **What you will be able to do after this notebook**
#
# - simulate the relay model token by token, in memory that does not grow with $t$;
# - name three ways in which a correct formula gives wrong digits, and recognise each;
# - use a *condition number* to say how many digits a sum has lost;
# - use ball arithmetic, which tells you by itself what it does not know.
#
# From the notebooks before you need: a relay layer adds $\lambda$ times the mean of everything up to a token; the
# prompt has $P$ tokens; the continuation token $t$ stands at position $N = P + t$; $D(t)$ is the influence of the
# prompt there;
# $L$ is the number of layers. `rm.influence` gives $D(t)$ to 12 digits.
#
# A number in `float64` holds about 16 digits, in `float32` about 7, in `float16` about 3.

# %%
import math
from fractions import Fraction

import numpy as np
from course import check
from flint import arb
from scipy.special import gammaln

import relaymodel as rm
from relaymodel import plotting

# %matplotlib inline

# %% [markdown]
# ## 3.1 Token by token
#
# A mean can be updated without keeping what it is the mean of. If $m_{n-1}$ is the mean of $x_1, \dots, x_{n-1}$, then
#
# $$ m_n = m_{n-1} + \frac{x_n - m_{n-1}}{n}. $$
#
# So one number per layer is all the memory we need. This is a *streaming* simulation.


# %%
def stream(prompt, depth, relay, steps):
    means = [0.0] * depth
    for n in range(1, prompt + steps + 1):
        x = 1.0 if n <= prompt else 0.0
        for l in range(depth):
            means[l] += (x - means[l]) / n
            x = x + relay * means[l]
        if n > prompt:
            yield x


model = rm.RelayModel.uniform(prompt=64, depth=6, relay=0.5)
ours = list(stream(64, 6, 0.5, steps=20_000))
exact = rm.influence(model, np.arange(1, 20_001))
print("largest relative error below 1e-12:", bool(np.max(abs(ours / exact - 1)) < 1e-12))
assert np.allclose(ours, exact, rtol=1e-12, atol=0)

# %% [markdown]
# `rm.simulate` does the same in chunks, so that NumPy does the work, and with sums carried in twice the precision.
# A million tokens take less than a second. The figure shows how far it is from the exact values.

# %%
curve = rm.simulate(model, steps=10**6)
assert np.max(abs(curve.distance / rm.influence(model, curve.t) - 1)) < 1e-14
plotting.plot_difference(curve, model).figure

# %% [markdown]
# Why do we want anything else, then? Because a simulation has to go through all tokens.
#
# **Exercise 3.1.** A simulation runs a million tokens per second. How many *years* does it need to reach $t = 10^{15}$?
# A year has about $3.15 \cdot 10^7$ seconds. (To 2 %.)

# %%
answer = ...
check("3.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $10^{15} / 10^6 = 10^9$ seconds.
#
# ```python
# answer = 1e9 / 3.15e7
# ```
#
# Notebook 4 needs $t$ far beyond that. Only a formula gets there.
# </details>

# %% [markdown]
# ## 3.2 First failure: a sum that grows while its terms shrink
#
# Let us run the recursion in `float32`, as one would on a GPU, with a plain running sum.


# %%
def recursion(number, steps, prompt=64, depth=6, relay=0.5):
    x = np.zeros(prompt + steps, number)
    x[:prompt] = 1
    n = np.arange(1, prompt + steps + 1).astype(number)
    for _ in range(depth):
        x = x + number(relay) * np.cumsum(x, dtype=number) / n
    return x[prompt:].astype(np.float64)


samples = np.unique(np.geomspace(1, 10**6, 120).round().astype(int))
single = rm.Curve(samples, recursion(np.float32, 10**6)[samples - 1])
double = rm.Curve(samples, recursion(np.float64, 10**6)[samples - 1])
figure = plotting.panels(
    lambda ax: plotting.plot_difference(single, model, ax=ax), lambda ax: plotting.plot_difference(double, model, ax=ax)
)
figure.axes[0].set_title("float32, running sum", loc="right")
figure.axes[1].set_title("float64, running sum", loc="right")
figure

# %% [markdown]
# In `float32` (left) the error *grows with t*, to about a part in a thousand at $t = 10^6$. In `float64` (right) it
# grows as well, but it starts nine powers of ten lower. Here is why. The sum $S = x_1 + \dots + x_n$ grows to a large
# number, and the terms $x_n$ become small. Adding a small term to a large sum rounds the result to the spacing of
# numbers near
# $S$. That spacing is $\epsilon S$, with $\epsilon \approx 10^{-7}$ in `float32` and $10^{-16}$ in `float64`. A million
# such roundings add up. (`rm.simulate`, in the figure before, adds in twice the precision, and stays at the last
# digit.)
#
# At the extreme, a small term changes nothing at all. Watch a counter:

# %%
big = np.float32(2**25)
print("2^25 + 1 in float32 is 2^25:", big + np.float32(1) == big)
assert big + np.float32(1) == big

# %% [markdown]
# **Exercise 3.2.** A `float32` has 24 binary digits. A counter starts at 0 and adds 1 again and again, in `float32`.
# At which number does it get stuck? (Try powers of two.)

# %%
answer = ...
check("3.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Up to $2^{24}$ every whole number has its own `float32`. The next one, $2^{24} + 1$, would need 25 binary digits, and
# is rounded back.
#
# ```python
# answer = next(2.0**k for k in range(40) if np.float32(2**k) + np.float32(1) == np.float32(2**k))
# ```
# </details>

# %% [markdown]
# ## 3.3 Second failure: large terms of alternating sign
#
# In notebook 2 we had an exact sum over positions, before we turned to poles. For two layers with $\lambda = 1$ it
# reads
#
# $$ D(t) = f(1) + \sum_{k=P+1}^{N} (-1)^{k+P} \binom{N-1}{k-1} \binom{k-2}{P-1} f(k), \qquad f(k) = (1 + 1/k)^2. $$
#
# With fractions it is exact. With floats the binomial coefficients are huge, and nearly cancel.


# %%
def terms(P, N):
    yield Fraction(4)
    for k in range(P + 1, N + 1):
        yield (-1) ** (k + P) * math.comb(N - 1, k - 1) * math.comb(k - 2, P - 1) * Fraction(k + 1, k) ** 2


def condition(values):
    return float(sum(abs(x) for x in values) / abs(sum(values)))


for N in (10, 20, 40, 60):
    values = list(terms(4, N))
    in_floats = sum(float(x) for x in values)
    digits = max(0, round(16 - math.log10(condition(values))))
    print(f"N = {N}:  exact {float(sum(values)):.4f},  digits left in float64: {digits:2d}")
    wrong = abs(in_floats / float(sum(values)) - 1)
    assert wrong < 1e-5 if N <= 20 else N < 60 or wrong > 1

# %% [markdown]
# At $N = 60$ the float sum is in the thousands, and the truth is 0.37. The **condition number** of a sum says so in
# advance. It is
#
# $$ \kappa = \frac{\sum |\text{terms}|}{|\sum \text{terms}|}. $$
#
# Each term is rounded by a relative $10^{-16}$. The result is then wrong by about $\kappa \cdot 10^{-16}$, relatively.
# So with $\kappa = 10^{6}$ ten of sixteen digits are left, and with $\kappa = 10^{16}$ none.
# A sum of positive terms has $\kappa = 1$: nothing is lost. This is why the formula $\frac PN \sum_k E_k h_k$ of
# notebook 2, all of whose terms are positive, is so much better than this one.
#
# **Exercise 3.3.** A sum in `float64` (16 digits) has condition number $10^9$. About how many digits of it are right?

# %%
answer = ...
check("3.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The relative error is about $10^9 \cdot 10^{-16} = 10^{-7}$.
#
# ```python
# answer = 16 - 9
# ```
# </details>

# %% [markdown]
# ## 3.4 Third failure: poles that nearly meet
#
# Poles are not safe either. Take two layers with $\lambda = 1/2$, one with $g = 0$ and one with a tiny $g = \epsilon$.
# Then $f$ has two simple poles, and
#
# $$ D(t) = a_0\, \Phi(0) + a_\epsilon\, \Phi(\epsilon), \qquad
#    a_0 = \lambda \Bigl( 1 + \lambda \frac{1+\epsilon}{\epsilon} \Bigr), \quad
#    a_\epsilon = \lambda (1 + \epsilon) \Bigl( 1 - \frac{\lambda}{\epsilon} \Bigr). $$
#
# Both residues grow like $\lambda^2/\epsilon$, with opposite signs, while $D$ itself hardly depends on $\epsilon$.
# The condition number is about $1/\epsilon$. Again we pay in digits:


# %%
def two_poles(eps, P=64, t=1000, lam=0.5):
    N = P + t

    def Phi(g):
        return math.exp(gammaln(P + 1 + g) + gammaln(N) - gammaln(P) - gammaln(N + 1 + g)) / (1 + g)

    return lam * (1 + lam * (1 + eps) / eps) * Phi(0) + lam * (1 + eps) * (1 - lam / eps) * Phi(eps)


errors = []
for eps in (1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13):
    exact = rm.influence(rm.RelayModel(64, [rm.Layer(0.5), rm.Layer(0.5, position=eps)]), 1000)
    errors.append(abs(two_poles(eps) / exact - 1))
    right = next(digits for digits in (9, 5, 2, 0) if errors[-1] < 10.0**-digits)
    print(f"g = {eps:.0e}   D(1000) = {exact:.6f}   digits of the formula that are right: {right} or more")
assert errors[0] < 1e-11
assert errors[-1] > 1e-2

# %% [markdown]
# `rm.influence` is right in every row: it treats poles that nearly meet as one cluster, or computes in balls.
# How do we know that it is right? That is the last section.
#
# **Exercise 3.4.** By the rule "condition number about $1/\epsilon$": which is the smallest power of ten $\epsilon$ at
# which the two-pole formula still has about 6 correct digits of 16? Answer with $\epsilon$ itself, such as `1e-3`.

# %%
answer = ...
check("3.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Six digits left of sixteen means ten lost, so $1/\epsilon = 10^{10}$.
#
# ```python
# answer = 1e-10
# ```
#
# The gamma functions lose some more digits: `gammaln` returns numbers in the thousands here, and their rounding errors
# go into an exponential. Rules of this kind are optimistic.
# </details>

# %% [markdown]
# ## 3.5 Arithmetic that knows what it does not know
#
# A *ball* is a number with a radius (`arb`, from the library python-flint), and every operation on balls makes the
# radius large enough to cover all rounding. The truth is always inside. Let us do the alternating sum of section 3.3 in
# balls of the precision of `float64`:

# %%
for N in (10, 20, 40, 60):
    total = sum((arb(x.numerator) / x.denominator for x in terms(4, N)), arb(0))
    print(f"N = {N}:  {total}")
    assert total.contains(arb(sum(terms(4, N)).numerator) / sum(terms(4, N)).denominator)

# %% [markdown]
# The notation `[0.90 +/- 0.01]` means: between 0.89 and 0.91; `[+/- 0.01]` means: between -0.01 and 0.01. For $N = 60$
# the ball says that it knows nothing, where the float said something false with a straight face. The cure is more
# digits from the start.
# `rm.influence_ball` takes as many as the answer needs:

# %%
print(rm.influence_ball(model, 10**6, digits=30).str(30))
print(rm.influence_ball(model, 10**400, digits=15).str(15))
assert abs(rm.influence(model, 10**6) / float(rm.influence_ball(model, 10**6).mid()) - 1) < 1e-12

# %% [markdown]
# The second line is $D$ at a token number with 400 digits. No simulation will ever check it. The ball is the check.
# `rm.influence` uses the same idea: it computes in `float64`, works out the condition number as it goes, and hands over
# to balls wherever it cannot promise twelve digits.
#
# **Exercise 3.5.** You get the ball `[2.5 +/- 0.4]` for an exponent. Which of the values 1.9, 2.2 and 3.0 may be the
# true one? Answer with the number.

# %%
answer = ...
check("3.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The truth lies between $2.1$ and $2.9$.
#
# ```python
# answer = 2.2
# ```
# </details>

# %% [markdown]
# A last picture: the same model simulated in `float64` and evaluated exactly. The two agree as far as the simulation
# goes, and the formula goes on.

# %% gallery
axes = plotting.plot_influence({"exact, $L = 6$": model}, plotting.grid(1, 1e12))
plotting.plot_curve({"simulated": curve}, ax=axes).figure

# %% [markdown]
# ## What you know now
#
# - Simulation is easy and accurate in `float64`, and limited by its length.
# - Digits are lost by long sums in short formats, by alternating signs, and by poles that nearly meet.
# - The condition number tells how many. Positive terms lose none.
# - In code: `rm.simulate`, `rm.influence`, `rm.influence_ball`.
#
# ## References
#
# - The model and its solution: sections 1 and 2 of [the theory](../docs/theory.md).
# - N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition, SIAM 2002: summation, condition
#   numbers.
# - F. Johansson, *Arb: efficient arbitrary-precision midpoint-radius interval arithmetic*, IEEE Transactions on
#   Computers 66 (2017), arXiv:1611.02831: the balls used here.
