/* The linear relay model in float64: L equal layers behind P prompt tokens (THEORY sections 1-4, 7 and 10).

   A setting is {prompt, depth, relay, residual, position, recency, bias, strength, offset, remind, every, length}.
   Without bias, reminders and recency D(t) is a closed form; otherwise the recursion decides, layer by layer. */
const relaymodel = (() => {
  "use strict";

  const LAST = 100000; // tokens of the continuation

  // ---- gamma functions -------------------------------------------------------------------------------------------

  // B_2j / (2j)!, for Euler-Maclaurin sums
  const BERNOULLI = [
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
  ];
  const SHIFT = 40; // from here on the series give full precision, for powers up to 33

  /* sum_{j>=0} (c/(y+j))^i for i > 1, and c (log y - psi(y)) shifted likewise for i = 1 (the log is left to the caller) */
  function zeta(i, y, c) {
    let sum = 0;
    for (; y < SHIFT; y++) sum += (c / y) ** i;
    let term = 1, series = 0;
    const square = 1 / (y * y);
    for (let j = 0; j < BERNOULLI.length; j++) { // B_2j/(2j)! i (i+1) ... (i+2j-2) y^(1-2j)
      term = j === 0 ? i / y : term * (i + 2 * j - 1) * (i + 2 * j) * square;
      series += BERNOULLI[j] * term;
    }
    return sum + (c / y) ** i * (y / (i - 1) + 0.5 + series);
  }

  function digamma(y) {
    let sum = 0;
    for (; y < SHIFT; y++) sum -= 1 / y;
    const square = 1 / (y * y);
    return sum + Math.log(y) - 0.5 / y
      - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))));
  }

  /* log Gamma(x+a)/Gamma(x), x > 0, without the loss of digits of a difference of logarithms of large numbers */
  function logGammaRatio(x, a) {
    let sum = 0;
    for (; x < SHIFT || x + a < SHIFT; x++) sum -= Math.log1p(a / x);
    const tail = (y) => (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * y * y)) / (y * y)) / (y * y)) / y;
    return sum + (x - 0.5) * Math.log1p(a / x) + a * Math.log(x + a) - a + tail(x + a) - tail(x);
  }

  // ---- the closed form -------------------------------------------------------------------------------------------

  const isClosed = (s) => s.recency === 0 && !s.bias && !s.remind;

  /* f(1), the difference on the prompt itself */
  const saturation = (s) => (s.residual + s.relay) ** s.depth;

  /* E_k, the sum over m > k of e_m = binomial(L, m) lambda^m rho^(L-m), k = 0..L-1 */
  function pathTotals(s) {
    const L = s.depth, e = new Float64Array(L + 1), E = new Float64Array(L);
    for (let m = 0, choose = 1; m <= L; choose *= (L - m) / (m + 1), m++) {
      e[m] = choose * s.relay ** m * s.residual ** (L - m);
    }
    for (let k = L - 1, sum = 0; k >= 0; k--) E[k] = sum += e[k + 1];
    return E;
  }

  /* D(t) and alpha(t) at real t > 0: D = Gamma(P+1+g) Gamma(N) / (Gamma(P) Gamma(N+1+g)) sum_k E_k h_k, with h_k from
     the power sums p_i = c^i sum_{P<j<=N} (j+g)^-i, c = 1+g, by Newton's identities (THEORY sections 2 and 3) */
  function closedForm(s, times) {
    const { prompt: P, depth: L, position: g } = s, c = 1 + g, E = pathTotals(s);
    const influence = new Float64Array(times.length), alpha = new Float64Array(times.length);
    const start = Array.from({ length: L }, (_, i) => (i < 2 ? 0 : zeta(i, P + c, c)));
    const p = new Float64Array(L), tails = new Float64Array(L + 1), h = new Float64Array(L);
    const psi = digamma(P + c), front = logGammaRatio(P, c);
    for (let index = 0; index < times.length; index++) {
      const t = times[index], N = P + t;
      p[1] = c * (digamma(N + c) - psi);
      for (let i = 2; i <= L; i++) tails[i] = zeta(i, N + c, c);
      for (let i = 2; i < L; i++) p[i] = start[i] - tails[i];
      let sum = 0, slope = 0;
      h[0] = 1;
      for (let k = 0; k < L; k++) {
        let next = 0, change = 0;
        for (let i = 1; i <= k; i++) {
          next += p[i] * h[k - i];
          change += tails[i + 1] / c * h[k - i];
        }
        if (k) h[k] = next / k;
        sum += E[k] * h[k];
        slope += E[k] * change;
      }
      influence[index] = Math.exp(front - logGammaRatio(N, c)) * sum;
      alpha[index] = t * (digamma(N + c) - digamma(N)) - t * slope / sum;
    }
    return { influence, alpha };
  }

  /* Both sides of the bound on D(t) (THEORY section 4); only for position 0 without recency, bias and reminders */
  function bracket(s, times) {
    const { prompt: P, depth: L } = s, E = pathTotals(s), psi = digamma(P + 1);
    const side = (step) => Float64Array.from(times, (t) => {
      const p1 = digamma(P + t + 1) - psi;
      let total = E[L - 1];
      for (let k = L - 1; k > 0; k--) total = E[k - 1] + total * (p1 + (k - 1) * step) / k;
      return P / (P + t) * total;
    });
    return { lower: side(0), upper: side(1 / (P + 1)) };
  }

  const isBracketed = (s) => isClosed(s) && s.position === 0 && s.relay > 0;

  // ---- recency: the kernel as a sum of geometric sequences ---------------------------------------------------------

  const FARTHEST = LAST + 4096; // the longest prompt
  const NODES = 32;

  /* kappa(d) = Gamma(d+delta)/(Gamma(delta) d!) = a [d = 0] + sum_k c_k q_k^d for d = 0..FARTHEST, 0 < delta <= 1:
     rates equal in the logarithm, weights by least squares of the relative error, which is below 2e-8 */
  const SUM = { q: Float64Array.of(1), c: Float64Array.of(1), a: 0 }; // kappa = 1
  let known = { delta: NaN };
  function geometric(delta) {
    if (delta === known.delta) return known;
    if (delta === 1) return SUM;
    const rates = Float64Array.from({ length: NODES }, (_, k) => (k ? 5e-6 * 1.2e6 ** ((k - 1) / (NODES - 2)) : 0));
    const distances = [...new Set(Array.from({ length: 160 }, (_, i) => Math.round(FARTHEST ** (i / 159))))];
    const rows = distances.map((d) => {
      const kappa = Math.exp(logGammaRatio(d + 1, delta - 1) - logGammaRatio(1, delta - 1));
      return Float64Array.from(rates, (y) => Math.exp(-y * (d - 1)) / kappa);
    });
    const first = leastSquares(rows, NODES);
    // the weights are those of q^(d-1), with which all columns have one size
    const q = Float64Array.from(rates, (y) => Math.exp(-y));
    const c = first.map((value, k) => value / q[k]);
    return (known = { delta, q, c, a: 1 - c.reduce((x, y) => x + y) });
  }

  /* c that minimises |A c - 1|, with a trace of damping that keeps the weights small; by Householder reflections */
  function leastSquares(A, columns) {
    const size = Array.from({ length: columns }, (_, k) => Math.hypot(...A.map((row) => row[k])));
    const R = A.map((row) => Float64Array.from([...row.map((value, k) => value / size[k]), 1]));
    for (let k = 0; k < columns; k++) {
      const row = new Float64Array(columns + 1);
      row[k] = 1e-11;
      R.push(row);
    }
    for (let k = 0; k < columns; k++) {
      let norm = 0;
      for (let i = k; i < R.length; i++) norm += R[i][k] ** 2;
      norm = Math.sqrt(norm) * (R[k][k] > 0 ? -1 : 1);
      const v = R.slice(k).map((row) => row[k]);
      v[0] -= norm;
      const square = v.reduce((sum, value) => sum + value * value, 0);
      for (let j = k; j <= columns; j++) {
        let dot = 0;
        for (let i = 0; i < v.length; i++) dot += v[i] * R[k + i][j];
        dot *= 2 / square;
        for (let i = 0; i < v.length; i++) R[k + i][j] -= dot * v[i];
      }
    }
    const c = new Float64Array(columns);
    for (let k = columns - 1; k >= 0; k--) {
      let value = R[k][columns];
      for (let j = k + 1; j < columns; j++) value -= R[k][j] * c[j];
      c[k] = value / R[k][k];
    }
    return c.map((value, k) => value / size[k]);
  }

  // ---- the tokens on which the recursion runs ----------------------------------------------------------------------

  const DENSE = 512; // every token up to here, from here on half as many in each octave

  /* Tokens 1..last: all of them, or all up to DENSE and then DENSE/2 in every octave, between which what is summed is
     interpolated.  `runs` are stretches [first, end) of indices with one step. */
  function tokens(last, all) {
    if (all || last <= DENSE) {
      const t = new Float64Array(last);
      for (let i = 0; i < last; i++) t[i] = i + 1;
      return { t, runs: [{ first: 0, end: last, step: 1 }] };
    }
    const t = Array.from({ length: DENSE }, (_, i) => i + 1), runs = [{ first: 0, end: DENSE, step: 1 }];
    for (let step = 2; t[t.length - 1] < last; step *= 2) {
      const first = t.length;
      for (let i = 0; i < DENSE / 2 && t[t.length - 1] < last; i++) t.push(t[t.length - 1] + step);
      runs.push({ first, end: t.length, step });
    }
    return { t: Float64Array.from(t), runs };
  }

  /* sum_{s<=n} kappa(n-s) u_s at the tokens n of `grid`, from the sums behind token 0 on; and the sums at its end */
  function convolve(kernel, grid, u, behind, out = new Float64Array(u.length)) {
    const { q, c, a } = kernel, K = q.length, sums = new Float64Array(K);
    for (let i = 0; i < out.length; i++) out[i] = a * u[i];
    for (const { first, end, step } of grid.runs) {
      if (step > 1) {
        const weights = strides(kernel, step);
        for (let k = 0; k < K; k++) sums[k] = strided(weights[k], c[k], first, end, u, out, sums[k]);
      } else if (K === 1) { // q = 1
        let y = behind[0];
        for (let i = first; i < end; i++) out[i] += c[0] * (y += u[i]);
        sums[0] = y;
      } else {
        for (let k = 0; k < K; k += 8) eight(k, first, end, u, out, q, c, behind, sums);
      }
    }
    return { out, sums };
  }

  /* Eight geometric sums at once, so that the processor need not wait for one of them */
  function eight(k, first, end, u, out, q, c, behind, sums) {
    const q0 = q[k], q1 = q[k + 1], q2 = q[k + 2], q3 = q[k + 3], q4 = q[k + 4], q5 = q[k + 5], q6 = q[k + 6], q7 = q[k + 7];
    const c0 = c[k], c1 = c[k + 1], c2 = c[k + 2], c3 = c[k + 3], c4 = c[k + 4], c5 = c[k + 5], c6 = c[k + 6], c7 = c[k + 7];
    let y0 = behind[k], y1 = behind[k + 1], y2 = behind[k + 2], y3 = behind[k + 3];
    let y4 = behind[k + 4], y5 = behind[k + 5], y6 = behind[k + 6], y7 = behind[k + 7];
    for (let i = first; i < end; i++) {
      const x = u[i];
      y0 = y0 * q0 + x; y1 = y1 * q1 + x; y2 = y2 * q2 + x; y3 = y3 * q3 + x;
      y4 = y4 * q4 + x; y5 = y5 * q5 + x; y6 = y6 * q6 + x; y7 = y7 * q7 + x;
      out[i] += y0 * c0 + y1 * c1 + y2 * c2 + y3 * c3 + (y4 * c4 + y5 * c5 + y6 * c6 + y7 * c7);
    }
    sums.set([y0, y1, y2, y3, y4, y5, y6, y7], k);
  }

  /* Weights of the values at -2, -1, 0 and 1 in the cubic's value at x */
  const cubic = (x) => [
    -(x + 1) * x * (x - 1) / 6, (x + 2) * x * (x - 1) / 2, -(x + 2) * (x + 1) * (x - 1) / 2, (x + 2) * (x + 1) * x / 6,
  ];

  /* Values at the tokens of a coarse grid, at all tokens up to `last` */
  function everywhere(grid, values, last) {
    const all = new Float64Array(last);
    for (const { first, end, step } of grid.runs) {
      const weights = Array.from({ length: step }, (_, j) => cubic((j + 1) / step));
      for (let i = first; i < end; i++) { // points before `first` are half a step apart
        if (step === 1) {
          all[i] = values[i];
          continue;
        }
        const one = i === first ? 2 : 1, two = i === first ? 4 : i === first + 1 ? 3 : 2, start = grid.t[i - 1];
        const a = values[i - 1 - two], b = values[i - 1 - one], c = values[i - 1], d = values[i];
        for (let j = 0; j < step && start + j < last; j++) {
          const w = weights[j];
          all[start + j] = w[0] * a + w[1] * b + w[2] * c + w[3] * d;
        }
      }
    }
    return all;
  }

  /* What a step of several tokens does to the geometric sums: a factor q^step, and the weights of u at -2, -1, 0 and 1
     steps from its start, between which u is a cubic */
  function strides(kernel, step) {
    kernel.strides ??= new Map();
    if (!kernel.strides.has(step)) {
      kernel.strides.set(step, Array.from(kernel.q, (q) => {
        const weights = [q ** step, 0, 0, 0, 0];
        for (let j = step, power = 1; j > 0 && power > 1e-40; j--, power *= q) {
          cubic(j / step).forEach((value, i) => { weights[i + 1] += power * value; });
        }
        return weights;
      }));
    }
    return kernel.strides.get(step);
  }

  /* One geometric sum over a stretch whose points are several tokens apart */
  function strided([jump, before, start, middle, after], c, first, end, u, out, y) {
    for (let i = first; i < end; i++) { // points before `first` are half a step apart
      const one = i === first ? 2 : 1, two = i === first ? 4 : i === first + 1 ? 3 : 2;
      y = y * jump + before * u[i - 1 - two] + start * u[i - 1 - one] + middle * u[i - 1] + after * u[i];
      out[i] += c * y;
    }
    return y;
  }

  // ---- the recursion -----------------------------------------------------------------------------------------------

  /* w_s = Gamma(s+g)/(Gamma(s) Gamma(1+g)) at position s */
  function positionWeights(g, grid, shift) {
    if (g === 0) return new Float64Array(grid.t.length).fill(1);
    const weights = new Float64Array(grid.t.length), first = logGammaRatio(1, g);
    for (let i = 0, last = 0; i < weights.length; i++) {
      const s = shift + grid.t[i];
      weights[i] = i && s === last + 1 ? weights[i - 1] * (last + g) / last : Math.exp(logGammaRatio(s, g) - first);
      last = s;
    }
    return weights;
  }

  /* D at the tokens t of a grid up to `last`:
     x' = rho x + lambda (v A X + sum_{P<s<=n} w_s kappa(n-s) x_s) / (v A + C), with A and C the weight of the prompt's
     and of the continuation's keys, and v = exp(b_t) the factor of the bias (THEORY sections 7 and 10) */
  function recursion(s, last = LAST) {
    const { prompt: P, position: g } = s, delta = 1 - s.recency;
    const grid = tokens(last, s.remind), { t } = grid, count = t.length;
    const base = geometric(delta > 1 ? delta - 1 : delta);
    // kappa of delta is the running sum of kappa of delta - 1
    const sum = (points, u, behind, spare = []) => {
      const inner = convolve(base, points, u, behind.sums, spare[0]);
      if (delta <= 1) return inner;
      const outer = convolve(SUM, points, inner.out, behind.total, spare[1]);
      return { out: outer.out, sums: inner.sums, total: outer.sums };
    };
    const nothing = { sums: new Float64Array(NODES), total: new Float64Array(1) };
    const ahead = tokens(P, true);
    const sparse = tokens(last, false); // enough for what is smooth
    const quiet = new Float64Array(sparse.t.length).fill(1e-200); // no 0: numbers below 1e-308 make processors slow
    let A = sum(sparse, quiet, sum(ahead, positionWeights(g, ahead, 0), nothing)).out;
    let C = sum(sparse, positionWeights(g, sparse, P), nothing).out;
    if (s.remind) [A, C] = [A, C].map((values) => everywhere(sparse, values, last));
    const w = positionWeights(g, grid, P);
    if (s.bias) for (let i = 0; i < count; i++) A[i] *= Math.exp(s.offset + s.strength * Math.log1p(t[i] / P));
    const [x, u, factor, ...spare] = Array.from({ length: 5 }, () => new Float64Array(count));
    if (s.remind) {
      for (let start = s.every - s.length; start < count; start += s.every) x.fill(1, start, start + s.length);
    }
    for (let i = 0; i < count; i++) factor[i] = s.relay / (A[i] + C[i]);
    const { residual } = s;
    for (let layer = 0, X = 1; layer < s.depth; layer++) {
      for (let i = 0; i < count; i++) u[i] = w[i] * x[i];
      const { out } = sum(grid, u, nothing, spare);
      for (let i = 0; i < count; i++) x[i] = residual * x[i] + factor[i] * (A[i] * X + out[i]);
      X *= residual + s.relay;
    }
    return { t, influence: x };
  }

  // ---- sampling ----------------------------------------------------------------------------------------------------

  /* D and alpha at times, by the polynomial through the five nearest points of the recursion */
  function sample(points, times) {
    const { t, influence: D } = points;
    const influence = new Float64Array(times.length), alpha = new Float64Array(times.length);
    times.forEach((time, index) => {
      let low = 0, high = t.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (t[middle] < time) low = middle + 1; else high = middle;
      }
      const first = Math.max(0, Math.min(t.length - 5, low - 2)), last = Math.min(t.length, first + 5);
      let value = 0, slope = 0;
      for (let i = first; i < last; i++) {
        let weight = 1, change = 0; // of the Lagrange polynomial that is 1 at t[i], and of its derivative
        for (let j = first; j < last; j++) {
          if (j === i) continue;
          change = (change * (time - t[j]) + weight) / (t[i] - t[j]);
          weight *= (time - t[j]) / (t[i] - t[j]);
        }
        value += weight * D[i];
        slope += change * D[i];
      }
      influence[index] = t[low] === time ? D[low] : value;
      alpha[index] = -time * slope / influence[index];
    });
    return { influence, alpha };
  }

  /* alpha at points of their own, t and influence, by the parabola through each and its neighbours in log t */
  function slopes({ t, influence }) {
    const x = t.map(Math.log), y = influence.map(Math.log), last = x.length - 1;
    return x.map((_, at) => {
      const i = Math.max(1, Math.min(last - 1, at));
      if (last < 2) return -(y[last] - y[0]) / (x[last] - x[0]);
      const left = (y[i] - y[i - 1]) / (x[i] - x[i - 1]), right = (y[i + 1] - y[i]) / (x[i + 1] - x[i]);
      return -(left + (right - left) * (2 * x[at] - x[i - 1] - x[i]) / (x[i + 1] - x[i - 1]));
    });
  }

  /* D at times between points, straight in both logarithms: for the eye */
  function interpolate({ t, influence }, times) {
    let i = 1;
    return times.map((time) => {
      for (i = time < t[i - 1] ? 1 : i; i < t.length - 1 && t[i] < time;) i++;
      const part = Math.log(time / t[i - 1]) / Math.log(t[i] / t[i - 1]);
      return influence[i - 1] * (influence[i] / influence[i - 1]) ** part;
    });
  }

  /* D(t) and alpha(t) at tokens t, an array of whole numbers up to LAST */
  function evaluate(s, times) {
    return isClosed(s) ? closedForm(s, times) : sample(recursion(s), times);
  }

  /* The exponent's limit as t grows: D ~ t^-limit up to powers of log t (THEORY sections 3, 7 and 10) */
  function limit(s) {
    if (s.remind) return 0;
    return s.bias && s.strength > 0 ? Math.max(0, 1 + s.position - s.strength) : 1 + s.position;
  }

  /* Slope and level of the straight line through log D against log t, every length of log t weighing the same */
  function straightLine(times, D) {
    const x = times.map(Math.log), y = Array.from(D, Math.log), last = x.length - 1;
    const weight = x.map((_, i) => (x[Math.min(i + 1, last)] - x[Math.max(i - 1, 0)]) / 2);
    const mean = (values) => values.reduce((sum, v, i) => sum + v * weight[i], 0) / weight.reduce((a, b) => a + b);
    const mx = mean(x), my = mean(y);
    const slope = mean(x.map((v, i) => (v - mx) * (y[i] - my))) / mean(x.map((v) => (v - mx) ** 2));
    return { alpha: -slope, at: (t) => Math.exp(my + slope * (Math.log(t) - mx)) };
  }

  return {
    saturation, isClosed, isBracketed, closedForm, bracket, recursion, sample, evaluate,
    slopes, interpolate, limit, straightLine,
  };
})();
