"""Reminders in the texts of a measurement: each run's own prompt returns (THEORY section 7)."""

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import show
from relaymodel.simulation.inputs import interval_table

Tokens = NDArray[np.int64]


def remind(tokens: Tokens, prompt: int, reminders: object) -> tuple[Tokens, NDArray[np.bool_]]:
    """Return texts, (2, P + T), with reminders put in, and at which continuation tokens they stand, shape (T,).

    Each run is reminded of its own prompt, a reminder of R tokens of the prompt's first R, from the beginning again if
    R > P.  The continuation goes on behind a reminder where it was interrupted; its end falls away.

    >>> remind(np.array([[1, 2, 7, 8, 9, 10], [3, 4, 7, 8, 9, 10]]), 2, [(2, 3)])[0].tolist()
    [[1, 2, 7, 1, 2, 8], [3, 4, 7, 3, 4, 8]]
    """
    steps = tokens.shape[1] - prompt
    own = np.zeros(steps, dtype=bool)
    result = tokens.copy()
    for start, stop in interval_table(reminders, steps):
        stop = min(int(stop), steps)
        own[start - 1 : stop] = True
        result[:, prompt + start - 1 : prompt + stop] = tokens[:, np.arange(stop - start + 1) % prompt]
    if own.all():
        raise ValueError(f"reminders must leave tokens of the continuation between them, got {show(reminders)}")
    result[:, prompt:][:, ~own] = tokens[:, prompt : prompt + np.sum(~own)]
    return result, own
