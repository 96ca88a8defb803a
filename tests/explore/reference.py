"""The recursion of THEORY sections 7 and 10 for equal layers, by plain and by Fourier convolution: for tests only."""

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln

PLAIN = 2000
"""Positions up to which sums are taken term by term: Fourier transforms round relative to the largest sum."""


def weights(start, exponent, count):
    """Gamma(s + exponent)/Gamma(s) for s = start, start + 1, ..."""
    s = np.arange(start, start + count, dtype=float)
    return np.exp(gammaln(s + exponent) - gammaln(s))


def differences(setting, times):
    """D of an `explore.Setting` at the tokens `times`."""
    short = times + setting.prompt <= PLAIN
    D = np.empty(times.size)
    for part in (short, ~short):
        if part.any():
            D[part] = _differences(setting, int(times[part].max()))[times[part] - 1]
    return D


def _differences(setting, steps):
    P, N = setting.prompt, setting.prompt + steps
    w = weights(1, float(setting.position), N)
    kernel = weights(1, -float(setting.recency), N)  # Gamma(d + 1 - gamma)/Gamma(d + 1), d = 0, 1, ...
    if N <= PLAIN:

        def sums(values):
            return np.convolve(w * values, kernel)[P:N]
    else:
        size = next_fast_len(2 * N, real=True)
        transformed = rfft(kernel, size)

        def sums(values):
            return irfft(rfft(w * values, size) * transformed, size)[P:N]

    on_prompt = np.zeros(N)
    on_prompt[:P] = 1
    prompt, continuation = sums(on_prompt), sums(1 - on_prompt)
    if setting.bias is not None:
        prompt = prompt * np.exp(setting.bias.log_bias(np.arange(1, steps + 1), P))
    x, X = np.zeros(steps), 1.0
    if setting.reminders is not None:
        for start, stop in setting.reminders.intervals(steps):
            x[start - 1 : stop] = 1
    for _ in range(setting.depth):
        read = sums(np.concatenate([np.zeros(P), x]))
        x = float(setting.residual) * x + float(setting.relay) * (prompt * X + read) / (prompt + continuation)
        X *= float(setting.residual + setting.relay)
    return x
