"""The root mean square influence of a network with random, unrelated value matrices (THEORY section 5)."""

from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import show
from relaymodel.exact.gauss import sum_rule
from relaymodel.exact.powersums import log_gamma_ratio, power_sums_near
from relaymodel.exact.promise import DEEPEST, LARGEST_PROMPT, LARGEST_T
from relaymodel.exact.residues import binary_exponent, complete_homogeneous, scale_up, scaled
from relaymodel.exact.spectrum import active_positions, path_coefficients
from relaymodel.exact.values import Points, Scalar, check_model, times
from relaymodel.model import RelayModel

DIRECT = 64  # prompt tokens summed one by one; beyond, a Gauss rule for each octave
GAUSS_NODES = 16  # of the rule over the prompt; as many tokens are summed one by one
PRODUCTS_AT_ONCE = 1 << 15  # of times and nodes

Array = NDArray[np.float64]


@overload
def rms_influence(model: RelayModel, t: Scalar) -> float: ...
@overload
def rms_influence(model: RelayModel, t: Points) -> Array: ...
def rms_influence(model: RelayModel, t: Scalar | Points) -> float | Array:
    r"""Return R(t), the influence when squares of paths and tokens add (THEORY section 5).

    $$ R(t)^2 = \sum_{s\le P} \sum_{m=1}^{L} e_m(\lambda^2, \rho^2)\, \bigl[(C^m)_{N,s}\bigr]^2, \qquad
       (C^m)_{n,s} = \frac{h_{m-1}(1/s, \dots, 1/n)}{n} \quad (g = 0). $$

    This is what random weights do: the $2^L$ paths, and the differences of the prompt's tokens, point in
    unrelated directions.  The sum over the prompt is exact for its first 64 tokens and uses the Gauss rule
    of the discrete uniform measure on each octave above, so that a long prompt costs O(log P).

    Parameters
    ----------
    model
        One position exponent common to all relaying layers; prompt up to 10^9, depth up to 64.
    t
        Real 0 < t <= 1e300, scalar or array.

    Returns
    -------
    float or ndarray
        Right to 1e-12 relative.

    Raises
    ------
    TypeError, ValueError
        For bad t, and for a model outside that domain.

    Examples
    --------
    >>> model = RelayModel.uniform(prompt=4, depth=1, relay=1)
    >>> rms_influence(model, [1, 12]) ** 2 * np.array([25, 256])  # one layer: P / N^2
    array([4., 4.])
    """
    check_model(model)
    model.demand_plain("rms_influence")
    _, flat, shape = times(t)
    if not any(path_coefficients(model, square=True)[1:]):
        return np.zeros(shape) if shape else 0.0
    positions = active_positions(model)
    if len(positions) > 1:
        raise ValueError(
            "model must have one position exponent common to all relaying layers for rms_influence: "
            "with different ones the 2^L paths have no common coefficients"
        )
    if model.prompt > LARGEST_PROMPT or model.depth > DEEPEST or np.any(flat > LARGEST_T):
        raise ValueError(
            f"prompt, depth and t must be at most {LARGEST_PROMPT:.0e}, {DEEPEST} and {LARGEST_T:.0e}, "
            f"got {model.prompt}, {model.depth} and {show(float(flat.max(initial=0)))}"
        )
    result = np.empty(flat.size)
    step = max(1, PRODUCTS_AT_ONCE // _rule(model.prompt)[0].size)
    for start in range(0, flat.size, step):
        result[start : start + step] = _rms(model, float(positions[0]), flat[start : start + step])
    return result.reshape(shape) if shape else float(result[0])


def _rms(model: RelayModel, g: float, t: Array) -> Array:
    c, P = 1 + g, model.prompt
    squares = path_coefficients(model, square=True)[1:]
    exponent = binary_exponent(max(squares))
    weights = scaled(squares, exponent)
    nodes, multiplicity = _rule(P)
    low = np.repeat(nodes + g, t.size)
    span = np.add.outer(P - nodes + 1, t).ravel()
    h = complete_homogeneous(power_sums_near(low, span, c, max(1, model.depth - 1))[: model.depth - 1])
    paths = (weights @ (h * h)).reshape(nodes.size, t.size)
    source = np.ones_like(nodes)
    if c != 1:  # c Gamma(s+g)/Gamma(s) in units of (P+c)^c; equal to 1 for g = 0
        source = c / (nodes + g) * ((nodes + c) / (P + c)) ** c * np.exp(log_gamma_ratio(nodes, c))
    total = np.sqrt((multiplicity * source**2) @ paths)
    N = P + t
    if c == 1:
        value = total / N
    else:
        root = ((P + c) / (N + c)) ** (0.5 * c)
        value = total * np.exp(-log_gamma_ratio(N, c)) * root * root
    result: Array = scale_up(value * 2.0 ** (0.5 * (exponent % 2)), exponent // 2)
    return result


@lru_cache(maxsize=64)
def _rule(prompt: int) -> tuple[Array, Array]:
    """Return nodes and weights of a rule for sums over s = 1..prompt of functions smooth in log s."""
    nodes = [np.arange(1.0, min(prompt, DIRECT) + 1)]
    weights = [np.ones_like(nodes[0])]
    first = DIRECT + 1
    while first <= prompt:
        count = min(first, prompt - first + 1)
        x, w = sum_rule(count, GAUSS_NODES)
        nodes.append(first + x)
        weights.append(w)
        first += count
    return np.concatenate(nodes), np.concatenate(weights)
