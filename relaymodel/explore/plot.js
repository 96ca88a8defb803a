/* The two panels as SVG, on axes that never move: D(t)/f(1) on log axes, and the local exponent below it. */
const panels = (() => {
  "use strict";

  const T = [1, 1e5], SHARE = [1e-4, 1], ALPHA = [-0.5, 2];
  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const power = (k) => (k === 0 ? "1" : k === 1 ? "10" : `10${k < 0 ? "⁻" : ""}${SUPERSCRIPTS[Math.abs(k)]}`);
  const escape = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

  /* Pixels of the panels in a box of this width and height */
  function layout(width, height, upper, lower) {
    const left = 46, right = 12;
    return { width, height, left, right: width - right, upper: { top: upper[0], bottom: upper[1] }, lower: { top: lower[0], bottom: lower[1] } };
  }

  function scales(box) {
    const linear = (a, b, low, high) => (value) => a + (b - a) * (value - low) / (high - low);
    const x = linear(box.left, box.right, 0, 5), share = linear(box.upper.bottom, box.upper.top, Math.log10(SHARE[0]), 0);
    const alpha = linear(box.lower.bottom, box.lower.top, ...ALPHA);
    const shown = (value, low, high) => Math.max(low, Math.min(high, value)); // numbers no browser trips over
    return {
      x: (t) => x(Math.log10(t)),
      share: (value) => share(shown(Math.log10(value), -9, 3)),
      alpha: (value) => alpha(shown(value, -9, 9)),
      time: (pixel) => 10 ** shown((pixel - box.left) / (box.right - box.left) * 5, 0, 5),
    };
  }

  const path = (xs, ys, from = "M") => {
    let text = "";
    for (let i = 0; i < xs.length; i++) text += `${i ? "L" : from}${xs[i].toFixed(1)} ${ys[i].toFixed(1)}`;
    return text;
  };

  const NOTES = [ // what the panels show, from this width on
    [480, "what is left of the difference on the prompt itself", "the local exponent, −d log D / d log t"],
    [340, "part of the difference that is left", "local exponent −d log D / d log t"],
    [0, "part that is left", "−d log D / d log t"],
  ];

  function frame(box, to) {
    const { upper, lower, left, right } = box, notes = NOTES.find(([width]) => box.width >= width).slice(1);
    let text = "";
    for (let k = 0; k <= 5; k++) {
      const x = to.x(10 ** k);
      text += `<path class="grid" d="M${x} ${upper.top}V${upper.bottom}M${x} ${lower.top}V${lower.bottom}"/>`
        + `<text class="tick" x="${x}" y="${lower.bottom + 17}" text-anchor="middle">${power(k)}</text>`;
    }
    for (let k = 0; 10 ** -k >= SHARE[0]; k++) {
      const y = to.share(10 ** -k);
      text += `<path class="grid" d="M${left} ${y}H${right}"/>`
        + `<text class="tick" x="${left - 8}" y="${y + 4}" text-anchor="end">${power(-k)}</text>`;
    }
    for (let a = ALPHA[0]; a <= ALPHA[1]; a += 0.5) {
      const y = to.alpha(a);
      text += `<path class="${a === 0 ? "zero" : "grid"}" d="M${left} ${y}H${right}"/>`
        + `<text class="tick" x="${left - 8}" y="${y + 4}" text-anchor="end">${String(a).replace("-", "−")}</text>`;
    }
    return text
      + `<text class="title" x="${left}" y="${upper.top - 10}"><tspan class="symbol">D</tspan>(<tspan class="symbol">t</tspan>) / `
      + `<tspan class="symbol">f</tspan>(1)<tspan class="note" dx="8">${notes[0]}</tspan></text>`
      + `<text class="title" x="${left}" y="${lower.top - 10}"><tspan class="symbol">α</tspan>(<tspan class="symbol">t</tspan>)`
      + `<tspan class="note" dx="8">${notes[1]}</tspan></text>`
      + `<text class="title" x="${right}" y="${lower.bottom + 36}" text-anchor="end"><tspan class="symbol">t</tspan>`
      + `<tspan class="note" dx="6">tokens since the end of the prompt</tspan></text>`;
  }

  /* The SVG's content.  `view` holds the curve, the window and its line, the bound, the measured curves, the cursor. */
  function draw(box, view) {
    const to = scales(box), { upper, lower, left, right } = box, X = view.saturation;
    const xs = Array.from(view.t, to.x), shares = Array.from(view.influence, (D) => to.share(D / X));
    const alphas = Array.from(view.alpha, to.alpha);
    const [from, until] = view.window.map(to.x);
    let plot = "", exponent = "", labels = "";

    for (const { top, bottom } of [upper, lower]) {
      plot += `<rect class="window" x="${from}" y="${top}" width="${until - from}" height="${bottom - top}"/>`;
    }
    const frameText = frame(box, to);

    const dilution = Array.from(view.t, (t) => to.share(view.prompt / (view.prompt + t)));
    let curves = `<path class="dilution" d="${path(xs, dilution)}"/>`;
    if (view.bound) {
      const sides = ["upper", "lower"].map((side) => Array.from(view.bound[side], (D) => to.share(D / X)));
      curves += `<path class="bound" d="${path(xs, sides[0])}${path([...xs].reverse(), sides[1].reverse(), "L")}Z"/>`;
    }
    if (view.band) {
      const bx = view.band.t.map(to.x);
      const sides = ["high", "low"].map((side) => view.band[side].map((D) => to.share(D / X)));
      curves += `<path class="band" d="${path(bx, sides[0])}${path([...bx].reverse(), sides[1].reverse(), "L")}Z"/>`;
    }
    for (const curve of view.measured) {
      const cx = curve.t.map(to.x), cy = curve.distance.map((d) => to.share(d * curve.factor / X));
      curves += `<path class="measured c${curve.colour}" d="${path(cx, cy)}"/>`;
      if (cx.length <= 120) {
        curves += cx.map((x, i) => `<circle class="point c${curve.colour}" cx="${x.toFixed(1)}" cy="${cy[i].toFixed(1)}" r="2.2"/>`).join("");
      }
    }
    curves += `<path class="influence" d="${path(xs, shares)}"/>`;
    if (view.line) {
      curves += `<path class="line" d="M${from} ${to.share(view.line.at(view.window[0]) / X)}L${until} ${to.share(view.line.at(view.window[1]) / X)}"/>`;
      exponent += `<path class="line" d="M${from} ${to.alpha(view.line.alpha)}H${until}"/>`;
    }
    exponent = `<path class="limit" d="M${left} ${to.alpha(view.limit)}H${right}"/>`
      + `<path class="influence" d="${path(xs, alphas)}"/>` + exponent;
    for (const curve of view.measured) {
      if (curve.line) exponent += `<path class="measured c${curve.colour}" d="M${from} ${to.alpha(curve.line.alpha)}H${until}"/>`;
    }

    // labels stand beside their lines, on the side that the curve leaves free
    const last = view.t.length - 1, edge = view.prompt / (view.prompt + view.t[last]) < SHARE[0] ? 0.5 * (left + right) : right - 6;
    const mark = view.prompt / (view.prompt + to.time(edge));
    const nearest = view.t.reduce((best, t, i) => (Math.abs(xs[i] - edge) < Math.abs(xs[best] - edge) ? i : best), 0);
    const below = view.influence[nearest] / X > mark;
    const y = below ? to.share(mark) + 20 : to.share(view.prompt / (view.prompt + to.time(edge - 110))) - 8;
    labels += `<text class="label" x="${edge}" y="${Math.max(upper.top + 14, Math.min(y, upper.bottom - 6))}" text-anchor="end">dilution P/(P+t)</text>`;
    const room = view.alpha[last] > view.limit + 0.02 ? 16 : -7;
    labels += `<text class="label limit-label" x="${right - 6}" y="${to.alpha(view.limit) + room}" text-anchor="end">limit ${format(view.limit)} as t → ∞</text>`;
    if (view.influence.some((D) => D / X < SHARE[0])) {
      labels += `<text class="label" x="${right - 6}" y="${upper.bottom - 6}" text-anchor="end">goes on below the axis ↓</text>`;
    }

    const cx = to.x(view.cursor.t);
    const cursor = `<path class="cursor" d="M${cx} ${upper.top}V${upper.bottom}M${cx} ${lower.top}V${lower.bottom}"/>`
      + dot(cx, to.share(view.cursor.influence / X), upper) + dot(cx, to.alpha(view.cursor.alpha), lower);
    return `<defs>${clip("in-upper", box, upper)}${clip("in-lower", box, lower)}</defs>${plot}${frameText}`
      + `<g clip-path="url(#in-upper)">${curves}</g><g clip-path="url(#in-lower)">${exponent}</g>${labels}${cursor}`;
  }

  const dot = (x, y, { top, bottom }) => (y < top || y > bottom ? "" : `<circle class="dot" cx="${x}" cy="${y}" r="4.5"/>`);
  const clip = (id, box, { top, bottom }) =>
    `<clipPath id="${id}"><rect x="${box.left}" y="${top - 2}" width="${box.right - box.left}" height="${bottom - top + 4}"/></clipPath>`;

  /* A number in few characters, with a true minus sign */
  const format = (value, digits = 2) => {
    const text = value.toFixed(digits);
    return (digits && /\./.test(text) && Number(text) === Math.round(Number(text)) ? String(Math.round(Number(text))) : text).replace("-", "−");
  };

  return { layout, scales, draw, format, escape, T };
})();
