"""The weights of all tokens on one, layer by layer backwards: for heads of any kind, at finite n."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import positive_integer, show
from relaymodel.model import RelayModel
from relaymodel.simulation.heads import kernel_of

LONGEST_ROW = 1 << 16
"""Tokens of a row, which takes their square in operations for each head."""


def token_weights(model: RelayModel, target: int) -> NDArray[np.float64]:
    r"""Return the weights of tokens 1..n on token n = `target`, the last row of the product of all layers.

    The row $e_n^T$ is carried through the layers from the last to the first, a sum over later queries for each head.
    This serves heads with a decay, which have no closed form, and takes the layers in the model's order; for all
    others `token_influence` has single weights exactly, at any n.

    Parameters
    ----------
    model
        Any relay model; its prompt does not matter.
    target
        n, 1 to 65 536.

    Returns
    -------
    ndarray
        Shape (n,), right to about 1e-14 relative where no strength is negative.

    Raises
    ------
    TypeError, ValueError
        For a target outside that range, and for exponents that `simulate` refuses.

    Examples
    --------
    >>> from relaymodel import Head, Layer, RelayModel
    >>> token_weights(RelayModel(1, [Layer(heads=[Head(1, decay=0.5)], residual=0)]), 3) * 7
    array([1., 2., 4.])
    """
    if not isinstance(model, RelayModel):
        raise TypeError(f"model must be a RelayModel, got {show(model)}")
    count = positive_integer("target", target)
    if count > LONGEST_ROW:
        raise ValueError(f"target must be at most {LONGEST_ROW}, got {count}; use token_influence for single weights")
    n = np.arange(1.0, count + 1)
    row = np.zeros(count)
    row[-1] = 1
    for i, layer in reversed(list(enumerate(model.layers))):
        out = float(Fraction(layer.residual)) * row
        out[0] += float(Fraction(layer.sink)) * row.sum()
        for head in layer.heads:
            kernel = kernel_of(i, head)
            later = np.convolve((row / kernel.total(n))[::-1], kernel.near(count, kernel.order))[:count][::-1]
            weights = kernel.weights(n)
            out += float(Fraction(head.relay)) * (later if weights is None else weights * later)
        row = out
    return row
