"""What certificates bound, in arithmetic of any range and fifty digits: norms, layers, runs."""

import mpmath as mp
import numpy as np

mp.mp.dps = 50


def matrix(array):
    return mp.matrix([[mp.mpf(float(x)) for x in row] for row in np.atleast_2d(array)])


def norm(a):
    """The largest singular value."""
    small = a.T * a if a.cols <= a.rows else a * a.T
    largest = max(abs(x) for x in small)
    if largest == 0:
        return mp.mpf(0)
    return mp.sqrt(max(mp.eigsy(small / largest, eigvals_only=True)) * largest)


def folded(gain, w, centred):
    """The matrix with the gain folded in, its columns centred."""
    result = matrix(gain[:, None] * 0 + np.diag(gain)) * matrix(w)
    if centred:
        for j in range(result.cols):
            mean = mp.fsum(result[i, j] for i in range(result.rows)) / result.rows
            for i in range(result.rows):
                result[i, j] -= mean
    return result


def layers(c):
    """The two layers that constants make: (relay, residual) of section 8 and of the covariance identity."""
    number = lambda x: mp.mpf(x)  # noqa: E731
    kappa, mu, omega, root = number(c.kappa), number(c.mu), number(c.omega), mp.sqrt(c.head_size)
    c_q = [number(w) * kappa * number(k) / root for w, k in zip(c.query_norm, c.key, strict=True)]
    c_k = [number(w) * kappa * number(q) / root for w, q in zip(c.key_norm, c.query, strict=True)]
    radius = [number(r) for r in c.value_radius]
    value = sum(map(number, c.value_norm)) * kappa
    own, key = (sum(x * r for x, r in zip(part, radius, strict=True)) for part in (c_q, c_k))
    spread = sum(number(w) * number(k) * r for w, k, r in zip(c.query_norm, c.key_radius, radius, strict=True)) * (
        kappa / root
    )
    together, side = number(c.together) * kappa, number(c.side_by_side) * kappa
    least = min(value, side, (together + side) / 2, *([together] if len(radius) == 1 else []))
    return (
        ((1 + mu) * omega * (value + 3 * key), (1 + mu) * (1 + 6 * own)),
        ((1 + mu) * omega * (least + 2 * key), (1 + mu) * (1 + spread)),
    )


def normed(a, row, gain, shift):
    mean = mp.fsum(row) / len(row) if a.norm == "layer" else mp.mpf(0)
    z = [v - mean for v in row]
    sigma = mp.sqrt(mp.fsum(v * v for v in z) / len(z) + mp.mpf(a.epsilon))
    added = np.zeros(len(row)) if shift is None else shift
    return [v / sigma * mp.mpf(float(g)) + mp.mpf(float(s)) for v, g, s in zip(z, gain, added, strict=True)]


def affine(row, m, shift):
    added = np.zeros(m.shape[1]) if shift is None else shift
    return [
        mp.fsum(v * mp.mpf(float(e)) for v, e in zip(row, column, strict=True)) + mp.mpf(float(s))
        for column, s in zip(m.T, added, strict=True)
    ]


def activation(a, v):
    if a.activation == "silu":
        return v / (1 + mp.exp(-v))
    if a.activation == "gelu":
        return v * (1 + mp.erf(v / mp.sqrt(2))) / 2
    return v * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (v + mp.mpf("0.044715") * v**3))) / 2


def states(network, tokens, bias=None):
    """The residual streams of one run: a list over layers of lists over positions of columns; without rotations."""
    a, w = network.architecture, network.weights
    x = [[mp.mpf(float(v)) for v in w.embedding[token]] for token in tokens]
    if w.positions is not None:
        x = [[v + mp.mpf(float(p)) for v, p in zip(row, w.positions[n], strict=True)] for n, row in enumerate(x)]
    result = [x]

    for b in w.blocks:
        u = [normed(a, row, b.attention_gain, b.attention_shift) for row in x]
        q, k, v = (
            [affine(row, m, s) for row in u]
            for m, s in ((b.query, b.query_bias), (b.key, b.key_bias), (b.value, b.value_bias))
        )
        h, group = a.head_size, a.heads // a.key_value_heads
        y = []
        for n, row in enumerate(x):
            mixed = []
            for i in range(a.heads):
                part, at = slice(i * h, (i + 1) * h), slice(i // group * h, (i // group + 1) * h)
                logits = [mp.fsum(map(mp.fmul, q[n][part], k[s][at])) / mp.sqrt(h) for s in range(n + 1)]
                if bias is not None:
                    logits = [l + mp.mpf(float(bias[n, s])) if s < bias.shape[1] else l for s, l in enumerate(logits)]
                top = max(logits)
                weights = [mp.exp(l - top) for l in logits]
                total = mp.fsum(weights)
                mixed += [mp.fsum(weights[s] * v[s][at][j] for s in range(n + 1)) / total for j in range(h)]
            y.append(list(map(mp.fadd, row, affine(mixed, b.output, b.output_bias))))
        x = y
        if b.up is not None:
            x = []
            for row in y:
                z = normed(a, row, b.mlp_gain, b.mlp_shift)
                inner = affine(z, b.up, b.up_bias)
                if b.gate is None:
                    inner = [activation(a, v) for v in inner]
                else:
                    inner = list(map(mp.fmul, inner, [activation(a, v) for v in affine(z, b.gate, b.gate_bias)]))
                x.append(list(map(mp.fadd, row, affine(inner, b.down, b.down_bias))))
        result.append(x)
    return result


def distances(network, tokens, bias=None):
    """The distances of two runs, a list over layers of lists over positions."""
    one, other = (states(network, run, bias) for run in tokens)
    return [
        [mp.sqrt(mp.fsum((v - w) ** 2 for v, w in zip(p, q, strict=True))) for p, q in zip(x, y, strict=True)]
        for x, y in zip(one, other, strict=True)
    ]


def sizes(network, b, x):
    """The floors of two runs, and the sizes that a block without rotations gives of states x, (2, N, width)."""
    a, h = network.architecture, network.architecture.head_size

    def sigma(row):
        mean = mp.fsum(row) / len(row) if a.norm == "layer" else mp.mpf(0)
        return mp.sqrt(mp.fsum((v - mean) ** 2 for v in row) / len(row) + mp.mpf(a.epsilon))

    def norm_of(row):
        return mp.sqrt(mp.fsum(v * v for v in row))

    def radius(points):
        middle = [mp.fsum(column) / len(points) for column in zip(*points, strict=True)]
        return max(norm_of(list(map(mp.fsub, p, middle))) for p in points)

    x = [[[mp.mpf(float(v)) for v in row] for row in run] for run in x]
    N = len(x[0])
    u = [[normed(a, row, b.attention_gain, b.attention_shift) for row in run] for run in x]
    q, k, v = (
        [[affine(row, m, s) for row in run] for run in u]
        for m, s in ((b.query, b.query_bias), (b.key, b.key_bias), (b.value, b.value_bias))
    )
    result = {name: [] for name in ("query", "key", "key_radius", "value_radius")}
    omega, mixed = [mp.mpf(0)] * N, [[[] for _ in range(N)] for _ in range(2)]
    for i in range(a.heads):
        part = slice(i * h, (i + 1) * h)
        of = {name: [row[part] for run in z for row in run] for name, z in (("query", q), ("key", k), ("value", v))}
        result["query"].append(max(map(norm_of, of["query"])))
        result["key"].append(max(map(norm_of, of["key"])))
        result["key_radius"].append(radius(of["key"]))
        result["value_radius"].append(radius([affine(row, b.output[part], None) for row in of["value"]]))
        for r in range(2):
            for n in range(N):
                logits = [mp.fsum(map(mp.fmul, q[r][n][part], k[r][s][part])) / mp.sqrt(h) for s in range(n + 1)]
                weights = [mp.exp(l) for l in logits]
                total = mp.fsum(weights)
                omega[n] = max(omega[n], (n + 1) * max(weights) / total)
                mixed[r][n] += [mp.fsum(weights[s] * v[r][s][part][j] for s in range(n + 1)) / total for j in range(h)]
    y = [
        [list(map(mp.fadd, x[r][n], affine(mixed[r][n], b.output, b.output_bias))) for n in range(N)] for r in range(2)
    ]
    floor, result["floor_mlp"] = ([(sigma(z[0][n]) + sigma(z[1][n])) / 2 for n in range(N)] for z in (x, y))
    z = [normed(a, row, b.mlp_gain, b.mlp_shift) for run in y for row in run]
    if b.gate is not None:
        result["largest_up"] = max(abs(e) for row in z for e in affine(row, b.up, b.up_bias))
        result["largest_active"] = max(abs(activation(a, e)) for row in z for e in affine(row, b.gate, b.gate_bias))
    return floor, result | {"omega": omega}
