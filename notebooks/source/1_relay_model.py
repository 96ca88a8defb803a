# %% [markdown]
# # 1. From attention to the relay model
#
# **What you will be able to do after this notebook**
#
# - say what is measured when we ask how much a transformer remembers of its prompt;
# - explain *dilution*: why a single attention layer forgets like $1/t$;
# - explain the *relay path*: why two layers forget more slowly than one;
# - derive the two-layer formula by hand, and check it with SymPy and with the package.
#
# You should know what attention and residual connections do. You need nothing else.
# Each exercise has a cell that tells you whether your answer is right.
# To run the cells yourself, start Jupyter in the folder of this notebook.

# %%
import numpy as np
import sympy
from course import check, play

import relaymodel as rm
from relaymodel import plotting
from relaymodel.explore import Setting

# %matplotlib inline

# %% [markdown]
# ## 1.1 The question
#
# Take two prompts of the same length, $P$ tokens each. Append the same continuation to both.
# Run the network on both texts. Then compare the hidden states of the two runs, token by token.
#
# We count tokens in two ways:
#
# - the *position* $n = 1, 2, 3, \dots$ counts from the start of the text;
# - the *continuation token* $t = 1, 2, 3, \dots$ counts from the end of the prompt, so $n = P + t$.
#
# The two runs read different tokens at positions $n \le P$, and the same tokens after that.
# Whatever differs at position $P + t$ must have come from the prompt, through attention.
# So the size of that difference says how much of the prompt is left at continuation token $t$.
# We call it the *influence* of the prompt and write $D(t)$.
#
# If $D(t)$ falls quickly, the network forgets its prompt quickly.

# %% [markdown]
# ## 1.2 Dilution
#
# Suppose attention is uniform: the token at position $n$ gives each of the $n$ tokens it can see the weight $1/n$.
# Then all $P$ prompt tokens together get the share
#
# $$ \text{share}(t) = \frac{P}{n} = \frac{P}{P + t}. $$
#
# The more the network writes, the less attention is left for the prompt. This is *dilution*.
# For large $t$ the share falls like $P/t$: ten times as many tokens, a tenth of the share.

# %%
P = 64
for t in (1, 64, 640, 6400, 64000):
    print(f"t = {t:6d}   share of the prompt = {P / (P + t):.4f}")

# %% [markdown]
# **Exercise 1.1.** A prompt has $P = 64$ tokens. At which continuation token $t$ is its share of uniform attention
# exactly 1 %?

# %%
answer = ...
check("1.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $64/(64+t) = 1/100$ gives $64 + t = 6400$.
#
# ```python
# answer = 6400 - 64
# ```
#
# Note that 6400 is the *position* $n$, not the continuation token $t$.
# </details>

# %% [markdown]
# ## 1.3 One layer
#
# Now let us build the simplest network that can forget. Write $h_n$ for the hidden state at position $n$.
# One attention layer with a residual connection does
#
# $$ h'_n = h_n + \sum_{s \le n} A_{ns}\, V h_s, $$
#
# where $A_{ns}$ is the attention weight of token $s$ on token $n$, and $V$ is the value and output matrix in one.
# Let $x_n$ be the *difference* of the hidden states of our two runs at position $n$.
# We simplify as far as possible, and keep three things in mind that we leave out:
#
# 1. attention is uniform in both runs, $A_{ns} = 1/n$ (real attention depends on content);
# 2. $V$ only multiplies the difference by a number $\lambda$, the *relay strength* (a real $V$ also turns it);
# 3. norms and MLPs change sizes only, and that goes into $\lambda$.
#
# Subtract the two runs. What is left is one number per position, and a *relay layer*:
#
# $$ x'_n = x_n + \lambda \cdot \frac{x_1 + x_2 + \dots + x_n}{n}. $$
#
# In words: keep what you have, add $\lambda$ times the mean of everything before you.
# At the embeddings the runs differ on the prompt only. So we start with $x_n = 1$ on the prompt and $0$ after it.
# The unit is thus the difference of the two prompts at one token.


# %%
def layer(x, strength):
    n = np.arange(1, len(x) + 1)
    return x + strength * np.cumsum(x) / n


P, steps, strength = 4, 8, 0.5
start = np.array([1.0] * P + [0.0] * steps)
first = layer(start, strength)
print("before the layer:", start)
print("after the layer: ", first.round(3))

# %% [markdown]
# On the prompt the result is $1 + \lambda$ everywhere, since the mean of ones is one.
# After the prompt it is $\lambda P/(P + t)$: the dilution, times $\lambda$. So **one layer forgets like $1/t$**:
#
# $$ D(t) = \lambda \frac{P}{P+t} \qquad (L = 1), $$
#
# where $L$ is the number of layers. The package knows this model. `rm.influence` evaluates $D(t)$.

# %%
one = rm.RelayModel.uniform(prompt=P, depth=1, relay=strength)
t = np.arange(1, steps + 1)
print("the package:", rm.influence(one, t).round(3))
assert np.allclose(rm.influence(one, t), strength * P / (P + t))
assert np.allclose(first[P:], rm.influence(one, t))

# %% [markdown]
# **Exercise 1.2.** On the prompt, one layer turns the difference $1$ into $1 + \lambda$.
# What is the difference on the prompt after $L = 6$ layers with $\lambda = 1/2$?

# %%
answer = ...
check("1.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Each layer sees a constant on the prompt. The mean of a constant is that constant. So each layer multiplies it by
# $1 + \lambda$.
#
# ```python
# answer = (1 + 1 / 2) ** 6
# ```
# </details>

# %% [markdown]
# ## 1.4 The relay path
#
# With a second layer something new happens. The first layer has written a trace of the prompt into *every* token of
# the continuation. When the second layer averages, it finds the prompt not only in the prompt, but also in all the
# continuation tokens that have read it. These tokens pass it on: they are **relays**.
#
# There are four ways from the prompt to token $t$ through two layers. In each layer the signal either stays
# where it is (the residual connection, factor 1) or moves by attention (factor $\lambda/n$):
#
# | first layer | second layer | where does it wait? |
# | --- | --- | --- |
# | attention | residual | reads the prompt at once, then stays at $t$ |
# | residual | attention | waits in the prompt, is read in layer 2 |
# | attention | attention | *within the prompt first*, then to $t$ |
# | attention | attention | **to a continuation token $u$ first, then from $u$ to $t$: the relay path** |
#
# Let us add them up. Write $N = P + t$ for the position that reads. After the first layer we have $1 + \lambda$ on the
# prompt, and $\lambda P/u$ at each position $u > P$. The second layer gives
#
# $$ D(t) = \underbrace{\lambda \frac PN}_{\text{residual}} \;+\; \frac{\lambda}{N} \Bigl[
#   \underbrace{P\,(1 + \lambda)}_{\text{prompt}} \;+\;
#   \underbrace{\sum_{u=P+1}^{N} \lambda \frac{P}{u}}_{\text{relays}} \Bigr]. $$
#
# Now let SymPy do the sum. `lam` stands for $\lambda$.

# %%
P, t = sympy.symbols("P t", integer=True, positive=True)
lam = sympy.symbols("lambda", positive=True)
u = sympy.symbols("u", integer=True, positive=True)
N = P + t

H_N, H_P = (sympy.summation(1 / u, (u, 1, last)) for last in (N, P))  # the sum from P + 1 to N is H_N - H_P
relays = lam * P * (H_N - H_P)
D = lam * P / N + lam / N * (P * (1 + lam) + relays)
D = sympy.factor(D)
D

# %% [markdown]
# The sum $1/(P+1) + \dots + 1/N$ is a difference of two *harmonic numbers* $H_n = 1 + 1/2 + \dots + 1/n$.
# SymPy writes `harmonic(n)`. Sorted by powers of $\lambda$, this is
#
# $$ D(t) = \frac{P}{P+t} \bigl[\, 2\lambda + \lambda^2 + \lambda^2\, (H_{P+t} - H_P) \,\bigr]
#    \qquad (L = 2). $$
#
# A harmonic number grows like a logarithm: $H_{P+t} - H_P \approx \log\frac{P+t}{P}$.
# **The relay path has put a logarithm into the influence**: $D(t)$ falls like $(\log t)/t$, more slowly than $1/t$.
#
# The package derives the same formula for any depth.

# %%
theirs = rm.derive(2).harmonic_form
print(theirs)
ours = D.subs({P: 5, t: 7, lam: sympy.Rational(1, 3)})
package = rm.derive(2).evaluate(P=5, t=7, relay=sympy.Rational(1, 3))
print("ours", ours, " package", package)
assert ours == package

# %% [markdown]
# **Exercise 1.3.** Take two layers with $\lambda = 1$. The bracket is $3 + (H_{P+t} - H_P)$: the 3 comes from the
# paths without a relay. Use $H_{P+t} - H_P \approx \log\frac{P+t}{P}$. At about which value of $t/P$ does the relay
# path contribute as much as all the other paths together? (To 1 %.)

# %%
answer = ...
check("1.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# We need $\log\frac{P+t}{P} = 3$, so $1 + t/P = e^3$.
#
# ```python
# answer = np.exp(3) - 1
# ```
#
# So behind a prompt of 64 tokens the relays overtake the direct paths after about 1200 tokens, and from then on
# they are what is left of the prompt.
# </details>

# %% [markdown]
# ## 1.5 More layers
#
# With three layers a trace can wait at two continuation tokens on its way, with four at three, and so on.
# Each wait brings one more logarithm. You may expect $(\log t)^{L-1}/t$, and notebook 2 proves it.
# Here is what it looks like. Both axes are logarithmic, so a power law would be a straight line.

# %% gallery
models = {f"$L = {depth}$": rm.RelayModel.uniform(prompt=64, depth=depth, relay=0.5) for depth in (1, 2, 4, 8, 12)}
plotting.plot_influence(models, plotting.grid(1, 1e6)).figure

# %% [markdown]
# Read the figure like this:
#
# - The dotted line is dilution, $P/(P+t)$. One layer runs parallel to it.
# - Deeper models start higher, because the difference grows by $1 + \lambda$ in each layer.
# - Deeper models also fall *more slowly*: the lines are less steep. At a million tokens the 12-layer model has lost
#   much less of its prompt than dilution would have it.
# - No line but that for $L = 1$ becomes straight. They keep bending down. Notebook 4 is about that bend.
#
# Now turn the handles yourself: this page has a slider for each parameter (in Jupyter; here on a web page you see the
# curves of $\lambda = 0.1$).

# %%
weak = {f"$L = {depth}$": rm.RelayModel.uniform(64, depth, 0.1) for depth in (1, 2, 4, 8)}
play(plotting.plot_influence(weak, plotting.grid(1, 1e6)).figure, Setting(depth=8, relay=0.1))

# %% [markdown]
# How much of $D(1)$ is left after a thousand tokens? Compare a weak relay with a strong one:

# %%
for strength in (0.1, 2):
    for depth in (1, 8):
        D = rm.influence(rm.RelayModel.uniform(64, depth, strength), [1, 1000])
        print(f"λ = {strength:3}   L = {depth}   D(1000) / D(1) = {D[1] / D[0]:.2f}")

# %% [markdown]
# With one layer the relay strength does not matter: it multiplies $D$ at every $t$. With eight layers it does.
# A weak relay keeps twice as much as dilution, and a strong one keeps nearly everything for a thousand tokens.
#
# **Exercise 1.4.** The signal takes the relay path once per logarithm. With $L$ layers, $D(t)$ falls like
# $(\log t)^{k}/t$. What is the largest power $k$ for $L = 6$?

# %%
answer = ...
check("1.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Six attention steps, of which the last one reaches token $t$. Before it there can be at most five stops at
# continuation tokens, and each brings one logarithm.
#
# ```python
# answer = 6 - 1
# ```
# </details>

# %% [markdown]
# **Exercise 1.5.** By hand: $P = 1$, $t = 1$, two layers, $\lambda = 1$. Apply the rule "keep what you have, add the
# mean of everything up to you" twice to the two numbers $(1, 0)$. What is the second number at the end?

# %%
answer = ...
check("1.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $(1, 0) \to (1 + 1,\; 0 + \tfrac12) = (2, \tfrac12) \to (4,\; \tfrac12 + \tfrac{2 + 1/2}{2}) = (4, \tfrac74)$.
# The formula agrees: $\frac12 [3 + \frac12] = \frac74$.
#
# ```python
# answer = 7 / 4
# ```
# </details>

# %% [markdown]
# ## What you know now
#
# - $D(t)$ is the difference between two runs at continuation token $t$: what is left of the prompt.
# - Dilution alone gives $P/(P+t)$. One layer does exactly that.
# - From two layers on, tokens that have read the prompt pass it on. Each relay brings a logarithm.
# - In code: `rm.RelayModel`, `rm.influence`, `rm.derive`.
#
# What we left out (content, directions, norms) is taken up in notebooks 5 and 7.
#
# ## References
#
# - The model: sections 1 and 2 of [the theory](../docs/theory.md).
# - A. Vaswani et al., *Attention is all you need*, NeurIPS 2017, arXiv:1706.03762.
# - R. Xiong et al., *On layer normalization in the transformer architecture*, ICML 2020, arXiv:2002.04745:
#   the pre-LN block, whose residual stream this model follows.
