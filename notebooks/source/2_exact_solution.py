# %% [markdown]
# # 2. The exact solution
#
# **What you will be able to do after this notebook**
#
# - say why the order of relay layers does not matter;
# - describe a whole stack of layers by one function $f(z)$;
# - compute $D(t)$ from the poles of $f$, and say which pole gives which logarithm;
# - compute $D(t)$ as an exact rational number, for any layers.
#
# From notebook 1 you need: the prompt has $P$ tokens, the continuation token $t$ stands at position $N = P + t$,
# and $D(t)$ is the influence of the prompt there. We solve a model that is a little richer than before.

# %%
import math
from fractions import Fraction

import sympy
from course import check

import relaymodel as rm
from relaymodel import plotting

# %matplotlib inline

# %% [markdown]
# ## 2.1 A layer is a matrix
#
# A relay layer now has three numbers:
#
# $$ x'_n = \rho\, x_n + \lambda\, \frac{\sum_{s \le n} w_s x_s}{\sum_{s \le n} w_s},
#    \qquad w_s = \frac{\Gamma(s+g)}{\Gamma(s)} \approx s^g . $$
#
# - $\lambda$, the *relay strength*, multiplies the mean;
# - $\rho$, the *residual strength*, multiplies what was there (1 in a transformer);
# - $g > -1$, the *position exponent*, makes the mean a weighted one. $g = 0$ is uniform attention.
#   $g > 0$ favours late tokens, $g < 0$ early ones. ($\Gamma$ is the gamma function, $\Gamma(n) = (n-1)!$.)
#
# Let us write down the matrix of the plain mean, $\rho = 0$, $\lambda = 1$, $g = 0$, for four tokens.
# It is called the **Cesàro matrix**. (`rm.Layer.apply` applies a layer exactly, with fractions.)


# %%
def matrix(layer, size):
    units = [[int(n == s) for n in range(size)] for s in range(size)]
    columns = [list(layer.apply(unit)) for unit in units]
    return sympy.Matrix(size, size, lambda n, s: sympy.Rational(columns[s][n]))


C = matrix(rm.Layer(relay=1, residual=0), 4)
C

# %% [markdown]
# Now two *different* layers, with different $\lambda$ and different $g$. Does their order matter?
# In general matrices do not commute. And a sliding window, the mean of the last two tokens, does not commute with $C$:

# %%
A = matrix(rm.Layer(relay=Fraction(1, 2)), 4)
B = matrix(rm.Layer(relay=Fraction(1, 3), position=2), 4)
window = sympy.Matrix([[2, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]) / 2
print("two relay layers commute:     ", A * B == B * A)
print("the window commutes with mean:", window * C == C * window)
assert A * B == B * A
assert window * C != C * window

# %% [markdown]
# **Exercise 2.1.** One model has a weak layer below a strong one, $\lambda = 1/10$ and then $\lambda = 2$. Another has
# them in the other order. What is the quotient of their influences at $t = 1000$?

# %%
answer = ...
check("2.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The matrices commute, so both models do the same.
#
# ```python
# weak, strong = rm.Layer(relay=Fraction(1, 10)), rm.Layer(relay=2)
# answer = rm.influence(rm.RelayModel(64, [weak, strong]), 1000) / rm.influence(rm.RelayModel(64, [strong, weak]), 1000)
# ```
# </details>

# %% [markdown]
# ## 2.2 Why they commute: Hausdorff matrices
#
# In 1921 Felix Hausdorff looked at all matrices that one particular matrix makes diagonal. It holds binomial
# coefficients with alternating signs:
#
# $$ \Delta_{ns} = (-1)^{s-1} \binom{n-1}{s-1}, \qquad \Delta\,\Delta = 1. $$
#
# Matrices that the same $\Delta$ makes diagonal commute, because diagonal matrices do. Ours are of this kind:

# %%
Delta = sympy.Matrix(4, 4, lambda n, s: (-1) ** s * math.comb(n, s))
assert Delta * Delta == sympy.eye(4)
assert (Delta * C * Delta).is_diagonal()
assert (Delta * B * Delta).is_diagonal()
Delta * C * Delta

# %% [markdown]
# On the diagonal of the mean stand $1, \frac12, \frac13, \frac14$: its eigenvalue at position $n$ is $1/n$.
# With position exponent $g$ it is $\frac{1+g}{n+g}$. So the eigenvalue of a whole layer is
# $\rho + \lambda \frac{1+g}{n+g}$, and a **stack of layers is one function**:
#
# $$ f(z) = \prod_{l=1}^{L} \Bigl( \rho_l + \lambda_l \frac{1 + g_l}{z + g_l} \Bigr),
#    \qquad \text{eigenvalue } f(n) \text{ at position } n. $$
#
# We never have to multiply matrices again. Note that $f(1) = \prod (\rho_l + \lambda_l)$, what the stack does to a
# constant, is just the value that all prompt tokens get.

# %%
model = rm.RelayModel(prompt=2, layers=[rm.Layer(relay=Fraction(1, 2)), rm.Layer(relay=Fraction(1, 3), position=2)])
for n in range(1, 5):
    print(n, " on the diagonal:", (Delta * A * B * Delta)[n - 1, n - 1], "  f(n):", model.eigenvalue(n))
    assert (Delta * A * B * Delta)[n - 1, n - 1] == sympy.Rational(model.eigenvalue(n))

# %% [markdown]
# **Exercise 2.2.** A layer is a plain weighted mean, $\rho = 0$ and $\lambda = 1$, with position exponent $g = 1$.
# What is its eigenvalue at position $n = 3$?

# %%
answer = ...
check("2.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $\frac{1+g}{n+g} = \frac{2}{4}$.
#
# ```python
# answer = Fraction(1 + 1, 3 + 1)
# ```
# </details>

# %% [markdown]
# ## 2.3 Poles instead of sums
#
# Now we could compute $D(t)$: transform the start by $\Delta$, multiply by the eigenvalues, transform back. This is
# exact, and useless for large $t$: it is a sum of huge numbers of alternating sign. But there is a trick.
#
# It uses *residues*. Where a function of $z$ has a pole, say at $a$, expand it in powers of $z - a$. The residue is the
# coefficient of $1/(z-a)$. For a simple pole it is what you get if you multiply by $z - a$ and put $z = a$. For a pole
# of order $m$, multiply by $(z-a)^m$, take the derivative $m - 1$ times, divide by $(m-1)!$, and put $z = a$.
#
# Look at this rational function of $z$:
#
# $$ \Phi(-z) = \frac{(N-1)!}{(P-1)!}\; \frac{1}{(1-z)\,(P+1-z)(P+2-z)\cdots(N-z)} . $$
#
# It has poles at $1$ and at the positions $P+1, \dots, N$. Its residues there are, up to the sign, the coefficients of
# that alternating sum: $D(t) = - \sum_n \mathrm{Res}_{z=n}\, f(z)\,\Phi(-z)$. And the residues of a rational function
# that falls like $1/z^2$ or faster, as $f \Phi$ does, add up to zero. So what stands at the integers is the negative of
# what stands at the *other* poles. These are the poles of $f$, and there are only as many as there are different $g$:
#
# $$ \boxed{\; D(t) = \sum_{g} \operatorname*{Res}_{z=-g} \bigl[ f(z)\, \Phi(-z) \bigr] \;} $$
#
# A sum over all positions has become a sum over a few poles. Let us try it on the model from above.

# %%
z = sympy.symbols("z")
P, N = 2, 6
f = (1 + sympy.Rational(1, 2) / z) * (1 + sympy.Rational(1, 3) * 3 / (z + 2))
Phi = sympy.Integer(math.factorial(N - 1)) / math.factorial(P - 1) / (1 - z)
Phi /= sympy.prod([n - z for n in range(P + 1, N + 1)])

at_positions = -sum(sympy.residue(f * Phi, z, n) for n in [1, *range(P + 1, N + 1)])
at_poles = sum(sympy.residue(f * Phi, z, pole) for pole in (0, -2))
recursion = model.differences(N)[-1]
print("integers:", at_positions, "  poles of f:", at_poles, "  the recursion itself:", recursion)
assert at_positions == at_poles == sympy.Rational(recursion)

# %% [markdown]
# ## 2.4 One pole, many logarithms
#
# Take uniform attention again, $g = 0$ and $\rho = 1$ in all layers. Then $f(z) = (1 + \lambda/z)^L$ has a single pole,
# at $0$, of order $L$.
#
# **One layer.** $f = 1 + \lambda/z$. The residue is $\lambda\,\Phi(0) = \lambda P/N$: dilution.
#
# **Two layers.** $f = 1 + 2\lambda/z + \lambda^2/z^2$. A double pole gives a *derivative*:
#
# $$ D = 2\lambda\,\Phi(0) + \lambda^2 \frac{d}{dz} \Phi(-z) \Big|_{z=0}
#      = \frac PN \Bigl[ 2\lambda + \lambda^2 \Bigl( 1 + \frac{1}{P+1} + \dots + \frac1N \Bigr) \Bigr], $$
#
# since the logarithmic derivative of $1/(n - z)$ at $0$ is $1/n$, and that of $1/(1-z)$ is $1$.
# This is the formula of notebook 1, without adding up a single path. Each further order of the pole brings one more
# derivative, and so one more logarithm. That is why $L$ layers give $(\log t)^{L-1}/t$.
#
# **Any number of layers.** Write $\Phi$ as a product and expand it in powers of $z$:
#
# $$ \Phi(-z) = \frac PN \cdot \frac{1}{1-z} \prod_{n=P+1}^{N} \frac{1}{1 - z/n}, \qquad
#    \prod_{n=P+1}^{N} \frac{1}{1 - z/n} = \sum_{k \ge 0} h_k z^k. $$
#
# This product is a *generating function*. Its coefficients $h_k$ are the complete homogeneous symmetric polynomials
# in $1/(P+1), \dots, 1/N$: the sum over all ways to pick $k$ of these numbers, with repetition,
#
# $$ h_0 = 1, \qquad h_1 = \sum_u \frac1u, \qquad h_2 = \sum_{u \le v} \frac{1}{u v}, \qquad \dots $$
#
# Do you recognise the relay paths? $h_k$ sums over all ways to stop at $k$ continuation tokens $u \le v \le \dots$,
# and each stop costs $1/u$. Finally, write $e_m$ for the coefficient of $z^{-m}$ in $f$: the total strength of all
# paths that use attention in exactly $m$ layers. Multiply the three series, of $f$, of $1/(1-z) = 1 + z + z^2 + \dots$
# and of the product, and collect $1/z$. Then the residue at $0$ is
#
# $$ \boxed{\; D(t) = \frac PN \sum_{k=0}^{L-1} E_k h_k, \qquad E_k = \sum_{m > k} e_m \;} $$
#
# A path with $m$ attention steps can make $k < m$ stops in the continuation. The other steps happen in the prompt.


# %%
def times_series(series, factor):  # multiply a power series by 1 + factor x, cut at the same length
    return [a + factor * b for a, b in zip(series, [0, *series[:-1]], strict=True)]


def solve(P, t, strengths):
    N, L = P + t, len(strengths)
    e = [Fraction(1)] + [Fraction(0)] * L
    for strength in strengths:
        e = times_series(e, strength)
    h = [Fraction(1)] + [Fraction(0)] * (L - 1)
    for n in range(P + 1, N + 1):
        for k in range(1, L):
            h[k] += h[k - 1] / n  # divide by 1 - x/n
    return Fraction(P, N) * sum(sum(e[k + 1 :]) * h[k] for k in range(L))


strengths = [Fraction(1, 2), Fraction(1), Fraction(1, 5)]
package = rm.influence_fraction(rm.RelayModel(4, [rm.Layer(strength) for strength in strengths]), 10)
print(solve(4, 10, strengths), "=", package)
assert solve(4, 10, strengths) == package

# %% [markdown]
# **Exercise 2.3.** Compute $h_2$ by hand for $P = 1$ and $N = 3$: the numbers are $\frac12$ and $\frac13$.
# Give a `Fraction`.

# %%
answer = ...
check("2.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The pairs $u \le v$ are $(2,2)$, $(2,3)$ and $(3,3)$.
#
# ```python
# answer = Fraction(1, 4) + Fraction(1, 6) + Fraction(1, 9)
# ```
# </details>

# %% [markdown]
# **Exercise 2.4.** Take three layers with $\lambda = \rho = 1$. What is $E_0$?

# %%
answer = ...
check("2.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $f = (1 + 1/z)^3$, so $e_0, e_1, e_2, e_3 = 1, 3, 3, 1$. $E_0$ is the sum over $m > 0$: all eight paths but the one
# that uses no attention, which never leaves its token.
#
# ```python
# answer = 3 + 3 + 1
# ```
# </details>

# %% [markdown]
# ## 2.5 Different position exponents
#
# If the layers have different $g$, then $f$ has several poles, and each contributes. A pole at $-g$ contributes
# $\Phi(g)$, which falls like $t^{-(1+g)}$. A pole shared by $m$ layers brings $m - 1$ logarithms, as before.
# So **the smallest $g$ wins**: with $m_*$ layers at the smallest exponent $g_*$,
#
# $$ D(t) \sim \text{const} \cdot \frac{(\log t)^{m_* - 1}}{t^{\,1 + g_*}} . $$
#
# One layer that favours early tokens is enough to change the law of the whole stack. The package says so:

# %%
half = sympy.Rational(1, 2)
for positions in ([0, 0, 0], [0, 0, -half], [1, 1, 0]):
    print(positions, "->", rm.derive(3, relay=1, position=positions).limit.leading)

# %% [markdown]
# The figure shows how steep $D$ is. The *local exponent* is the slope of $D$ on a log-log plot, with the sign turned:
# for $t^{-a}$ it is $a$. Notebook 4 has more about it. The horizontal axis runs to $t = 10^{300}$, to see the limits.

# %% gallery
stacks = {"g = 0, 0, 0": (0, 0, 0), "g = 0, 0, −1/2": (0, 0, -0.5), "g = 1, 1, 1": (1, 1, 1)}
models = {name: rm.RelayModel(64, [rm.Layer(1, 1, g) for g in stack]) for name, stack in stacks.items()}
plotting.plot_local_exponent(models, plotting.grid(1, 1e300)).figure

# %% [markdown]
# **Exercise 2.5.** A stack of five layers has three with $g = 0$ and two with $g = -1/2$.
# Its influence falls like $(\log t)^k / t^a$. What is $a$?

# %%
answer = ...
check("2.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The smallest exponent is $g_* = -1/2$, so $a = 1 + g_*$.
#
# ```python
# answer = 1 - 1 / 2
# ```
# </details>

# %% [markdown]
# **Exercise 2.6.** And what is $k$?

# %%
answer = ...
check("2.6", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Two layers share the smallest exponent: a pole of order two, one derivative, one logarithm. The three layers with
# $g = 0$ change the constant only.
#
# ```python
# answer = 2 - 1
# ```
# </details>

# %% [markdown]
# ## What you know now
#
# - Relay layers are Hausdorff matrices. They commute, and a stack is one function $f(z)$.
# - $D(t)$ is a sum over the poles of $f$. A pole of order $m$ at $-g$ gives $m - 1$ logarithms and $t^{-(1+g)}$.
# - For $g = 0$ it is $\frac PN \sum_k E_k h_k$: paths, sorted by the number of stops.
# - In code: `rm.Layer`, `rm.RelayModel.eigenvalue`, `rm.influence_fraction`, `rm.derive(...).limit`.
#
# ## References
#
# - The solution: section 2 of [the theory](../docs/theory.md).
# - F. Hausdorff, *Summationsmethoden und Momentfolgen I, II*, Mathematische Zeitschrift 9 (1921).
# - G. H. Hardy, *Divergent Series*, Oxford 1949: the chapter on Hausdorff means, with the Cesàro means as an example.
