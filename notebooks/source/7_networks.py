# %% [markdown]
# # 7. Real networks: prediction and measurement
#
# **What you will be able to do after this notebook**
#
# - measure how much a network remembers of its prompt, and avoid the usual mistakes;
# - predict the forgetting of an *untrained* network from its weights, with nothing fitted;
# - read measured curves of a trained network, and say what they can and cannot tell;
# - certify the theorem of notebook 5 for a concrete network.
#
# From the notebooks before you need: $P$ is the length of the prompt, $t$ counts the tokens after it, $N = P + t$. $L$
# is the number of layers. A relay layer has strength $\lambda$. The local exponent is $\alpha = -d \log D / d \log t$.
#
# The networks here are small, so that the notebook runs in seconds, without torch. Measurements on large ones are read
# from files that are stored beside the code.

# %%
import csv
from pathlib import Path

import numpy as np
from course import check

import relaymodel as rm
from relaymodel import plotting
from relaymodel.certificate import certify
from relaymodel.inference import compare_laws
from relaymodel.networks.calibration import calibrate
from relaymodel.networks.protocol import RandomTokens
from relaymodel.networks.texts import english
from relaymodel.networks.transformer import Architecture, Transformer

# %matplotlib inline

# %% [markdown]
# ## 7.1 The measurement
#
# The protocol is that of notebook 1. Take two prompts of equal length and one continuation. Run the network on both
# texts. At each layer and each continuation token take the Euclidean distance of the two hidden states (the residual
# stream). Repeat with several pairs of prompts, and average the logarithms.
#
# What can go wrong:
#
# - **Lengths.** The prompts must have the same number of *tokens*, or the positions do not match.
# - **Seams.** Join token ids, not texts: a tokenizer may merge letters across the seam.
# - **Number format.** In a short format, the difference of two nearly equal states is mostly rounding. See below.
# - **Errors.** Neighbouring tokens are strongly correlated. Error bars come from different *pairs*, not from tokens.
#
# Let us look at the number format. We make states with a difference that falls exactly like $1/t$, store them in
# `float16`, and read the exponent off what is left.


# %%
def stored_in(number):
    rng = np.random.default_rng(0)
    t = np.unique(np.geomspace(1e3, 1e5, 60).round())
    x = rng.normal(size=4000)
    pairs = [
        (x.astype(number).astype(float), (x + rng.normal(size=x.size) / k).astype(number).astype(float)) for k in t
    ]
    return rm.Curve(t, [np.linalg.norm(a - b) for a, b in pairs])


for number in (np.float32, np.float16):
    print(number.__name__, f"exponent {rm.fit_power_law(stored_in(number)).alpha:.2f}")

# %% [markdown]
# **Exercise 7.1.** In `float16` a difference smaller than the spacing $u$ of the numbers is rounded to $0$, or,
# with a probability proportional to the difference $\Delta$, to a whole $u$. So the mean *square* is proportional to
# $\Delta\, u$. If $\Delta$ falls like $t^{-1}$, with which exponent does the root mean square distance fall?

# %%
answer = ...
check("7.1", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The root of $\Delta$ falls like $t^{-1/2}$.
#
# ```python
# answer = 1 / 2
# ```
#
# An exponent of one half may be nothing but the number format. `rm.measure` warns below `float32`.
# </details>

# %% [markdown]
# Now a real network, though a small one: an untrained pre-LN transformer with 4 layers and width 128, in `float64`. We
# compare three pairs of random prompts of 64 tokens, with a random continuation of 800.

# %%
shape = Architecture(depth=4, width=128, heads=4, vocabulary=256, positions="none")
network = Transformer.random(shape, np.random.default_rng(0))
rng = np.random.default_rng(1)
pairs = rm.Pairs(*rng.integers(0, 256, (2, 3, 64)), RandomTokens(800))  # three pairs of prompts of 64 tokens
measured = rm.measure(network, pairs)
plotting.plot_measurement(measured).figure

# %% [markdown]
# The first layer runs parallel to dilution, $P/(P+t)$. Deeper layers fall more slowly: the relay is at work, in a
# network with softmax, norms and MLPs. Here are fitted exponents, with errors over pairs. Even the first layer does not
# show its limit, 1, since the window begins well before $t = P$. (Remember notebook 4.)

# %%
for layer in (1, 2, 3, 4):
    fit = measured.alpha(layer)
    low, high = fit.window
    print(f"layer {layer}   exponent {fit.alpha:.2f} ± {fit.noise_stderr:.2f}   from t = {low:.0f} to {high:.0f}")

# %% [markdown]
# ## 7.2 Random directions: squares add
#
# In notebook 1 all differences pointed in one direction. In an untrained network the value matrices are random, and
# each path from the prompt to token $t$ comes out in a direction of its own. Unrelated vectors add like Pythagoras: the
# squares of their lengths add. So instead of $D(t)$ we need the *root mean square* influence,
#
# $$ R(t)^2 = \sum_{s \le P} \; \sum_{\text{paths from } s} (\text{weight of the paths with that set of layers})^2 . $$
#
# `rm.rms_influence` computes it. For one layer each prompt token contributes $\lambda/N$, so
# $R = \lambda \sqrt P / N$, where $D = \lambda P/N$: smaller by $\sqrt P$, with the same shape.
#
# **Exercise 7.2.** One layer with $\lambda = 1$, $P = 64$. What is $R$ at $t = 64$?

# %%
answer = ...
check("7.2", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# $N = 128$ and $\sqrt{64} = 8$.
#
# ```python
# answer = 8 / 128
# ```
# </details>

# %% [markdown]
# ## 7.3 The prediction
#
# What is $\lambda$ in a network? The norm divides the residual stream by its standard deviation $\sigma$. The value and
# output matrices multiply a random vector by their root mean square gain, call it $a$. So $\lambda \approx a/\sigma$,
# from the weights alone. The MLP makes each token's own difference a little larger, which goes into $\rho$.
# `calibrate` reads all this off the weights and the embeddings. **It never runs the network.**

# %%
calibration = calibrate(network, pairs)
for number, layer in enumerate(calibration.layers, start=1):
    print(f"layer {number}   λ = {layer.relay:.2f}   ρ = {layer.residual:.2f}   σ = {layer.sigma:.3f}")

# %% [markdown]
# And here is the prediction (dashed) on top of the measurement. Nothing is fitted, not even a factor.

# %% gallery
plotting.plot_prediction(calibration, measured).figure

# %%
for layer in (1, 2, 3, 4):
    curve = measured.curve(layer)
    ratio = calibration.predict(layer, curve.t) / curve.distance
    print(f"layer {layer}   predicted / measured: {ratio.min():.2f} to {ratio.max():.2f} over all t")
    assert np.all(abs(ratio - 1) < 0.35)

# %% [markdown]
# A relay model, with strengths read off the weights, gives the forgetting of an untrained network to some ten per cent,
# at every token. This is why we trust it as an explanation.
#
# ## 7.4 A larger untrained network
#
# The same holds for the architecture of GPT-2 with 12 layers, untrained. Running it needs torch and some minutes, so
# here we read a stored measurement. (`rm.measure` runs on models of the transformers library too; see
# `relaymodel.networks.huggingface`.)

# %%
stored = Path("..") / "tests" / "data"
first = rm.Curve.from_csv(stored / "gpt2_untrained.csv", layer=1)
last = rm.Curve.from_csv(stored / "gpt2_untrained.csv", layer=12)
print(first.provenance["network"], "-", first.provenance["pairs"])
axes = plotting.plot_local_exponent(rm.RelayModel.uniform(64, 1, 1), plotting.grid(1, 2048))
plotting.plot_local_exponent(rm.estimate_exponent(first), label="GPT-2 untrained, layer 1", ax=axes).figure

# %% [markdown]
# Behind layer 1 the local exponent rises from 0 to 1, as $t/(P+t)$ does: one layer, no relay.
# Behind layer 12 it rises as well, more slowly:

# %%
for name, curve in (("layer  1", first), ("layer 12", last)):
    local = rm.estimate_exponent(curve, [16, 128, 1024])
    print(name, "  α(16), α(128), α(1024) =", ", ".join(f"{alpha:.2f}" for alpha in local.alpha))

# %% [markdown]
# **Exercise 7.3.** Someone fits one straight line to the curve of layer 12 and reports the exponent 0.27. Given the
# local exponents above, is 0.27 the limit for large $t$? Answer `"yes"` or `"no"`.

# %%
answer = ...
check("7.3", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# At $t = 1024$ the local exponent is well above 0.27, and it rises. The line describes its window.
#
# ```python
# answer = "no"
# ```
# </details>

# %% [markdown]
# ## 7.5 A trained network
#
# Trained attention is not uniform: it looks for content. There is no reason that the relay model should fit. Here is a
# measurement on SmolLM2-135M (30 layers, trained), three pairs of prompts, 2048 tokens.
#
# The cell reads stored data. On a machine with torch, transformers and a network connection you can set `LIVE = True`
# to measure again; it takes some minutes.

# %%
LIVE = False


def trained_curve():
    if LIVE:
        try:
            from relaymodel.networks.huggingface import load

            model, text = load("HuggingFaceTB/SmolLM2-135M"), english()
            a, b = ([text[k * 50_000 :][:2000] for k in pair] for pair in ((0, 1, 2), (3, 4, 5)))
            return rm.measure(model, rm.Pairs(a, b, RandomTokens(1500), prompt=64), layers=[30]).curve(30)
        except (ImportError, OSError) as problem:
            print(f"cannot measure here ({problem}); stored data instead")
    return rm.Curve.from_csv(stored / "smollm2_135m_trained.csv")


trained = trained_curve()
law = rm.fit_power_law(trained)
print(trained.provenance["network"])
low, high = law.window
print(f"exponent {law.alpha:.2f} ± {law.stderr:.2f} from t = {low:.0f} to {high:.0f}, adequate: {law.adequate}")
plotting.plot_power_law(trained, law).figure

# %% [markdown]
# An exponent near one half, and the test for bending does not object. Is this a power law, then, and the theory wrong?
# Notebook 4 has taught us to ask what the window can tell. `compare_laws` fits several laws to it and weighs them:

# %%
comparison = compare_laws(trained)
print("told apart:", comparison.told_apart)
assert not comparison.told_apart

# %% [markdown]
# Two decades of $t$ with this scatter cannot tell a power law from a relay model, or from a law with a limit of 1.
#
# More pairs help. A second measurement on the same network has eight pairs. It is stored as a table of exponents, one
# for early tokens ($t \le 16$), one for the whole window ($t \ge 16$) and one for late tokens ($t \ge 256$):

# %%
lines = (Path("..") / "docs" / "smollm2.csv").read_text().splitlines()
table = list(csv.DictReader(line for line in lines if not line.startswith("#")))
for row in table:
    if row["bias"] == "0":
        early, whole, late = (float(row[name]) for name in ("early", "alpha", "late"))
        name = f"{row['weights']:9s} layer {row['layer']}"
        print(f"{name}   early {early:.2f}   whole {whole:.2f} ± {float(row['stderr']):.2f}   late {late:.2f}")

# %% [markdown]
# Now it shows: in the trained network too, the exponent is not one number. It rises along the text, as it does in the
# relay model. The "exponent of trained networks" near 0.55 belongs to a window.
#
# **Exercise 7.4.** Does the measured exponent $0.53$ contradict a limit of 1 at $t \to \infty$? Answer `"yes"` or
# `"no"`.

# %%
answer = ...
check("7.4", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The laws are not told apart in this window, and those with the limit 1 are among them.
#
# ```python
# answer = "no"
# ```
#
# It does not *confirm* the limit either: the late exponents are still below 1. To know more, measure longer texts.
# </details>

# %% [markdown]
# ## 7.6 A certificate
#
# The theorem of notebook 5 does hold for trained networks, whatever their attention does, as long as its conditions
# hold. `certify` checks them for a concrete network and two runs, computes the constants, and verifies the inequality
# at every layer and position. Here for a tiny network, to be quick:

# %%
tiny = Transformer.random(
    Architecture(depth=2, width=32, heads=4, vocabulary=256, positions="none"), np.random.default_rng(0)
)
text = english()
certificate = certify(tiny, (text[:32], text[5000:5032], text[20_000:20_200]))
for hypothesis in certificate.hypotheses:
    print(f"{hypothesis.name:18s} {hypothesis.holds}")
print("the theorem applies:", certificate.applies, "  all inequalities verified:", certificate.holds)
assert certificate.applies
assert certificate.holds

# %% [markdown]
# The bound is rigorous, and loose. How loose? The crudest of its versions uses the weights alone, and holds for every
# text. The tighter ones use more of what these two runs do.

# %%
for name in ("weights", "section_8", "prompts"):
    print(f"{name:10s} bound / distance at the last token: about 10^{certificate.log10_ratio(name)[-1]:.1f}")

# %% [markdown]
# **Exercise 7.5.** A bound that is 1000 times too large at every $t$: can it still have the right *rate*, the right
# power of $t$ and of $\log t$? Answer `"yes"` or `"no"`.

# %%
answer = ...
check("7.5", answer)

# %% [markdown]
# <details><summary>Answer</summary>
#
# A constant factor moves a curve up on log-log paper. It does not change the slope.
#
# ```python
# answer = "yes"
# ```
# </details>

# %% [markdown]
# ## What you know now
#
# - How to measure forgetting, and that short number formats alone can produce an exponent of one half.
# - Untrained networks follow the root mean square relay model, with strengths read off their weights.
# - A trained network's exponent near 0.55 describes its window. It rises along the text.
# - In code: `rm.measure`, `calibrate`, `rm.rms_influence`, `compare_laws`, `certify`.
#
# ## References
#
# - Random directions: section 5 of [the theory](../docs/theory.md).
# - A. Vaswani et al., *Attention is all you need*, NeurIPS 2017, arXiv:1706.03762.
# - R. Xiong et al., *On layer normalization in the transformer architecture*, ICML 2020, arXiv:2002.04745.
