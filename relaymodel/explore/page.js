/* The page: controls, what they show, the link and the Python code that say the same. */
(() => {
  "use strict";

  const M = relaymodel, { format } = panels;
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);

  // ---- the setting ------------------------------------------------------------------------------------------------

  // `link` names a value in the page's address; `log`: slider equal in the logarithm, which must then start at 1 or 2
  const CONTROLS = [
    { group: "Model" },
    { key: "prompt", link: "P", symbol: "P", label: "prompt tokens", log: true },
    { key: "depth", link: "L", symbol: "L", label: "layers", step: 1 },
    { key: "relay", link: "relay", symbol: "λ", label: "relay: what attention adds", step: 0.01 },
    { key: "residual", link: "residual", symbol: "ρ", label: "residual: what a token keeps", step: 0.01 },
    { group: "Where attention looks" },
    { key: "position", link: "position", symbol: "g", label: "position: early (−) or late (+) keys", step: 0.05 },
    { key: "recency", link: "recency", symbol: "γ", label: "recency: far (−) or near (+) keys", step: 0.05 },
    { group: "Bias on the prompt’s keys", on: "bias" },
    { key: "strength", link: "bias", symbol: "β", label: "strength: offset + β log(1 + t/P)", step: 0.05 },
    { key: "offset", link: "offset", symbol: "b", label: "offset, in nats", step: 0.1 },
    { group: "Reminders: the prompt again", on: "remind" },
    { key: "every", link: "every", symbol: "M", label: "one every M tokens", log: true },
    { key: "length", link: "length", symbol: "R", label: "tokens long", log: true },
    { group: "Window of the straight line" },
    { key: "from", link: "from", symbol: "t", label: "first token", log: true },
    { key: "to", link: "to", symbol: "t", label: "last token", log: true },
  ];
  for (const c of CONTROLS) if (c.key) [c.min, c.max] = DATA.bounds[c.key];
  const FIELDS = CONTROLS.filter((c) => c.key);
  const SWITCHES = CONTROLS.filter((c) => c.on).map((c) => c.on);
  const field = Object.fromEntries(FIELDS.map((c) => [c.key, c]));
  const whole = (c) => c.log || c.step === 1;
  const STEPS = 120; // of a logarithmic slider

  const PLAIN = { position: 0, recency: 0, bias: false, remind: false, prompt: 64, depth: 12, relay: 0.2, residual: 1, from: 16, to: 1024 };
  const PRESETS = [
    { name: "Untrained", set: PLAIN,
      text: "Uniform attention: every token looks at all before it alike, and those that have read the prompt pass it on, so that it fades slowly." },
    { name: "Trained", set: { ...PLAIN, recency: 0.9 },
      text: "Attention that favours near keys sees less of the beginning and is a weaker relay: the prompt fades faster, a likely reason why trained networks forget faster." },
    { name: "Stopped", set: { ...PLAIN, bias: true, strength: 3, offset: 0 },
      text: "A bias that grows as log(1 + t/P) on the prompt’s keys holds their share of uniform attention near one, and the decay stops." },
    { name: "Reversed", set: { ...PLAIN, recency: 0.9, bias: true, strength: 3, offset: 0 },
      text: "The same bias on attention that favours near keys starts from a small share of the prompt and raises it through the window: D grows again." },
  ];
  const isPreset = (preset) => Object.entries(preset.set).every(([key, value]) => state[key] === value);

  const state = { ...DATA.setting };

  DATA.curves.forEach((curve, i) => { curve.index = i; });
  // those drawn at first differ in colour
  [...DATA.curves].sort((a, b) => b.shown - a.shown).forEach((curve, i) => { curve.colour = i % 6; });

  /* Keep what depends on another value within its bounds; `moved` is what the user touched last */
  function reconcile(moved) {
    if (state.remind && state.length > state.every) {
      if (moved === "length") state.every = state.length; else state.length = state.every;
    }
    if (state.to < 2 * state.from) {
      if (moved === "from") state.to = Math.min(DATA.last, 2 * state.from); else state.from = Math.max(1, Math.floor(state.to / 2));
    }
  }

  // ---- the link ---------------------------------------------------------------------------------------------------

  function fragment() {
    const off = new Set(CONTROLS.flatMap((c, i) => (c.on && !state[c.on] ? CONTROLS.slice(i + 1, i + 3).map((x) => x.key) : [])));
    return "#" + FIELDS.filter((c) => !off.has(c.key)).map((c) => `${c.link}=${state[c.key]}`).join("&");
  }

  /* Take over what an address says; return what in it cannot be used */
  function follow(text) {
    const wrong = [], given = new Map();
    for (const part of text.replace(/^#/, "").split("&").filter(Boolean)) {
      const [name, entry] = part.split("=");
      const c = FIELDS.find((x) => x.link === name), value = c && parse(c, decoded(entry ?? ""));
      if (c && typeof value === "number") given.set(c.key, value);
      else wrong.push(c ? `${name}: ${value.error}` : `${name} is not known here`);
    }
    if (given.size) {
      for (const c of FIELDS) state[c.key] = given.get(c.key) ?? DATA.setting[c.key];
      state.bias = given.has("strength") || given.has("offset");
      state.remind = given.has("every") || given.has("length");
      reconcile("to");
    }
    return wrong;
  }

  /* The text of a link's part; as it is if it is no such part */
  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  /* A number, or a fraction such as 2/3, within the bounds of a control; otherwise {error} */
  function parse(c, text) {
    const fraction = /^\s*([-−]?\d+)\s*\/\s*(\d+)\s*$/.exec(text), plain = text.trim().replace("−", "-").replace(",", ".");
    const value = fraction ? Number(fraction[1].replace("−", "-")) / Number(fraction[2]) : plain === "" ? NaN : Number(plain);
    if (!Number.isFinite(value)) return { error: `a number is needed, got ${text.trim() || "nothing"}` };
    if (whole(c) && !Number.isInteger(value)) return { error: `a whole number is needed, got ${text.trim()}` };
    if (value < c.min || value > c.max) return { error: `from ${c.min} to ${c.max} only, got ${text.trim()}` };
    return value;
  }

  // ---- the controls -----------------------------------------------------------------------------------------------

  const toSlider = (c, value) => (c.log ? STEPS * Math.log(value / c.min) / Math.log(c.max / c.min) : value);
  const fromSlider = (c, at) => (c.log ? Math.round(c.min * (c.max / c.min) ** (at / STEPS)) : Number(at));
  const show = (value) => String(Math.round(value * 1e4) / 1e4).replace("-", "−");

  function build() {
    let group = null;
    for (const c of CONTROLS) {
      if (c.group) {
        group = document.createElement("fieldset");
        const legend = document.createElement("legend");
        if (c.on) {
          legend.innerHTML = `<label><input type="checkbox" id="${c.on}"> ${c.group}</label>`;
        } else {
          legend.textContent = c.group;
        }
        group.append(legend);
        if (c.on) group.dataset.on = c.on;
        get("controls").append(group);
        continue;
      }
      const row = document.createElement("div");
      row.className = "control";
      row.innerHTML = `<label for="${c.key}"><i>${c.symbol}</i> ${c.label}</label>`
        + `<input type="range" id="${c.key}" min="${c.log ? 0 : c.min}" max="${c.log ? STEPS : c.max}" step="${c.log ? 1 : c.step}">`
        + `<input type="text" inputmode="${c.min < 0 ? "text" : "decimal"}" id="${c.key}-value" aria-label="${c.symbol}, ${c.label}" `
        + `aria-describedby="${c.key}-error"><span class="error" id="${c.key}-error" role="alert"></span>`;
      group.append(row);
      const [slider, entry] = row.querySelectorAll("input");
      slider.addEventListener("input", () => {
        let value = fromSlider(c, slider.value);
        if (c.log && value === state[c.key]) { // steps of less than one token
          value += Math.sign(slider.value - toSlider(c, state[c.key])) | 0;
          value = Math.max(c.min, Math.min(c.max, value));
        }
        change(c.key, value);
      });
      entry.addEventListener("change", () => {
        const value = parse(c, entry.value);
        entry.setAttribute("aria-invalid", typeof value !== "number");
        get(`${c.key}-error`).textContent = typeof value === "number" ? "" : value.error;
        if (typeof value === "number") change(c.key, value);
      });
    }
    get("controls").addEventListener("submit", (event) => event.preventDefault());
    for (const name of SWITCHES) get(name).addEventListener("change", (event) => change(name, event.target.checked));

    for (const preset of PRESETS) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = preset.name;
      button.addEventListener("click", () => { Object.assign(state, preset.set); refresh(); });
      get("presets").append(button);
    }
  }

  function change(key, value) {
    state[key] = value;
    reconcile(key);
    refresh(key);
  }

  /* Bring the controls in line with the state; the one that is being moved stays under the user's hand */
  function synchronise(moved) {
    for (const c of FIELDS) {
      const slider = get(c.key), entry = get(`${c.key}-value`);
      if (c.key !== moved || !c.log) slider.value = toSlider(c, state[c.key]);
      slider.setAttribute("aria-valuetext", show(state[c.key]));
      entry.value = show(state[c.key]);
      entry.removeAttribute("aria-invalid");
      get(`${c.key}-error`).textContent = "";
    }
    for (const name of SWITCHES) {
      get(name).checked = state[name];
      const group = get(name).closest("fieldset");
      group.classList.toggle("off", !state[name]);
      for (const input of group.querySelectorAll(".control input")) input.disabled = !state[name];
    }
    const found = PRESETS.findIndex(isPreset);
    get("presets").querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", i === found));
    get("explanation").textContent = found < 0
      ? "Your own setting. The four examples differ only in where attention looks and in the bias on the prompt’s keys."
      : PRESETS[found].text;
  }

  // ---- what is shown ----------------------------------------------------------------------------------------------

  const spread = (low, high, count) =>
    [...new Set(Array.from({ length: count + 1 }, (_, i) => Math.round(low * (high / low) ** (i / count))))];
  const TIMES = spread(1, DATA.last, 240);
  const COLUMNS = spread(1, DATA.last, 700);
  let read = 1024;

  /* Everything the panels need of the present setting */
  function compute() {
    const window = [state.from, state.to], common = { prompt: state.prompt, saturation: M.saturation(state), window, limit: M.limit(state) };
    if (!state.remind) {
      const inside = spread(...window, 60), all = [...TIMES, ...inside, read];
      const { influence, alpha } = M.evaluate(state, all), n = TIMES.length, m = n + inside.length;
      const line = M.straightLine(inside, influence.slice(n, m));
      return {
        ...common, t: TIMES, influence: influence.slice(0, n), alpha: alpha.slice(0, n), line,
        bound: M.isBracketed(state) ? M.bracket(state, TIMES) : null,
        cursor: { t: read, influence: influence[m], alpha: alpha[m] },
      };
    }
    const D = M.recursion(state).influence, levels = between(TIMES), inside = between(spread(...window, 60)).filter((t) => t >= window[0] && t <= window[1]);
    const points = { t: levels, influence: levels.map((t) => D[t - 1]) }, sampled = M.slopes(points);
    const band = { t: [], low: [], high: [] };
    for (let i = 0; i < COLUMNS.length; i++) {
      let low = Infinity, high = 0;
      for (let j = i ? COLUMNS[i - 1] : 0; j < COLUMNS[i]; j++) {
        if (D[j] < low) low = D[j];
        if (D[j] > high) high = D[j];
      }
      band.t.push(COLUMNS[i]);
      band.low.push(low);
      band.high.push(high);
    }
    const near = levels.reduce((best, t, i) => (Math.abs(Math.log(t / read)) < Math.abs(Math.log(levels[best] / read)) ? i : best), 0);
    return {
      ...common, t: levels, influence: points.influence, alpha: sampled, band,
      line: inside.length > 2 ? M.straightLine(inside, inside.map((t) => D[t - 1])) : null,
      cursor: { t: read, influence: D[read - 1], alpha: sampled[near] },
    };
  }

  /* The tokens just before a reminder, or before the first one, that are nearest to some tokens */
  function between(times) {
    const { every, length } = state, rest = every - length;
    return [...new Set(times.map((t) => {
      if (t <= rest || rest === 0) return t;
      const cycle = Math.max(0, Math.round((t - rest) / every));
      return cycle * every + rest > DATA.last ? (cycle - 1) * every + rest : cycle * every + rest;
    }))].sort((a, b) => a - b).filter((t) => t >= 1);
  }

  /* Measured curves moved onto the model's: their factor, and their own straight line in the window */
  function measured(view) {
    return DATA.curves.filter((curve) => curve.shown).map((curve) => {
      const inside = curve.t.map((t, i) => i).filter((i) => curve.t[i] >= state.from && curve.t[i] <= state.to);
      const used = inside.length > 1 ? inside : curve.t.map((t, i) => i);
      const model = M.interpolate(view, used.map((i) => curve.t[i]));
      const factor = Math.exp(used.reduce((sum, i, j) => sum + Math.log(model[j] / curve.distance[i]), 0) / used.length);
      const line = inside.length > 5 ? M.straightLine(inside.map((i) => curve.t[i]), inside.map((i) => curve.distance[i])) : null;
      return { ...curve, factor, line };
    });
  }

  let box, view, waiting = 0, announce = 0;

  function measureBox() {
    const width = Math.max(240, Math.round(get("plot").getBoundingClientRect().width)), small = width < 480;
    if (width === box?.width) return false;
    const height = small ? 372 : 560;
    box = panels.layout(width, height, small ? [26, 196] : [30, 330], small ? [226, 328] : [370, 516]);
    get("plot").setAttribute("viewBox", `0 0 ${width} ${height}`);
    get("plot").setAttribute("height", height);
    return true;
  }

  /* Compute and draw; the time it takes is what a step of a slider costs */
  function redraw() {
    waiting = 0;
    view = compute();
    view.measured = measured(view);
    get("plot").innerHTML = panels.draw(box, view);
    get("finding").innerHTML = finding(view);
    reading(view);
    legend(view);
    if (get("python").closest("details").open) get("python").textContent = python();
    if (get("values").closest("details").open) values();
    clearTimeout(announce);
    announce = setTimeout(() => {
      get("announcement").textContent = get("finding").textContent;
      try { history.replaceState(null, "", fragment()); } catch { /* an address that cannot be changed: the button still copies it */ }
    }, 400);
  }

  function refresh(moved) {
    synchronise(moved);
    if (!waiting) waiting = requestAnimationFrame(redraw);
  }

  const thousands = (t) => String(t).replace(/\B(?=(\d{3})+$)/g, "\u202f");

  /* What the figure says, in words */
  function finding(v) {
    const [from, to] = v.window, within = `<i>t</i> = ${thousands(from)} … ${thousands(to)}`;
    if (!v.line) return `Between reminders there are too few points in ${within} for a straight line.`;
    const alpha = v.line.alpha, inside = Array.from(v.alpha).filter((_, i) => v.t[i] >= from && v.t[i] <= to);
    const aim = v.limit === 0
      ? state.remind ? "; reminders without end hold a plateau." : "; as <i>t</i> grows it goes to 0, and <i>D</i> comes to rest."
      : `; as <i>t</i> grows it goes to <b class="limit">${format(v.limit)}</b>.`;
    return `A straight line through ${within} reads <b class="line"><i>α</i> = ${format(alpha)}</b>`
      + `${alpha < -0.02 ? ": the difference <em>grows</em>" : ""}. The local exponent runs from ${format(Math.min(...inside))} to ${format(Math.max(...inside))} in that window${aim}`;
  }

  function reading(v) {
    const { t, influence, alpha } = v.cursor, part = influence / v.saturation;
    const slider = get("read");
    slider.style.setProperty("--left", `${box.left}px`);
    slider.style.setProperty("--right", `${box.width - box.right}px`);
    slider.value = 48 * Math.log10(t);
    slider.setAttribute("aria-valuetext", `t = ${t}`);
    get("reading").innerHTML = `at <i>t</i> = ${thousands(t)}: <i>D</i> = ${significant(influence)}, `
      + `${part > 0.001 ? `${significant(part * 100, 3)} %` : significant(part, 3)} of <i>f</i>(1) = ${significant(v.saturation)}; `
      + `<i>α</i> = ${format(alpha, 3)}`;
  }

  /* Digits of a number, the power of ten written out */
  function significant(value, digits = 4) {
    const text = value.toPrecision(digits);
    if (!/e/.test(text)) return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
    const [mantissa, exponent] = text.split("e");
    return `${mantissa.replace(/\.?0+$/, "")} × 10<sup>${Number(exponent)}</sup>`.replace("-", "−");
  }

  function legend(v) {
    const tightest = v.bound && Math.max(...TIMES.map((t, i) => v.bound.upper[i] / v.bound.lower[i] - 1));
    const entries = [
      `<li><span class="key influence"></span>${state.remind ? "the model, just before each reminder" : "the model, exact"}</li>`,
      `<li><span class="key line"></span>straight line in the window</li>`,
    ];
    if (v.band) entries.push('<li><span class="key band"></span>all tokens, reminders included</li>');
    if (v.bound) {
      entries.push(`<li><span class="key bound"></span>between the two sides of the bound, ${tightest < 1e-9 ? "which are equal here" : `at most ${significant(100 * tightest, 2)} % apart`}</li>`);
    }
    DATA.curves.forEach((curve, i) => {
      const drawn = v.measured.find((other) => other.index === i);
      entries.push(`<li><label><input type="checkbox" data-curve="${i}" ${curve.shown ? "checked" : ""}><span class="key measured c${curve.colour}"></span>`
        + `${panels.escape(curve.name)}${drawn ? ` × ${significant(drawn.factor, 2)}${drawn.line ? `, <i>α</i> = ${format(drawn.line.alpha)}` : ""}` : ""}</label></li>`);
    });
    const text = entries.join("");
    if (text === legend.shown) return;
    legend.shown = text;
    const focused = document.activeElement?.dataset?.curve;
    get("legend").innerHTML = text;
    if (focused !== undefined) get("legend").querySelector(`[data-curve="${focused}"]`)?.focus();
  }

  function values() {
    const times = [1, 2, 5].flatMap((m) => [0, 1, 2, 3, 4].map((k) => m * 10 ** k)).concat(DATA.last).sort((a, b) => a - b);
    const { influence, alpha } = M.evaluate(state, times);
    get("values").tBodies[0].innerHTML = times.map((t, i) =>
      `<tr><th scope="row">${thousands(t)}</th><td>${significant(influence[i], 6)}</td><td>${significant(influence[i] / view.saturation, 6)}</td>`
      + `<td>${state.remind ? "–" : format(alpha[i], 4)}</td></tr>`).join("");
  }

  // ---- Python -----------------------------------------------------------------------------------------------------

  function python() {
    const s = state;
    const options = [`prompt=${s.prompt}`, `depth=${s.depth}`, `relay=${s.relay}`, `residual=${s.residual}`];
    if (s.position !== 0) options.push(`position=${s.position}`);
    if (s.recency !== 0) options.push(`recency=${s.recency}`);
    const lines = ["import numpy as np", "import relaymodel as rm", "", `model = rm.RelayModel.uniform(${options.join(", ")})`];
    if (M.isClosed(s)) {
      lines.push(`t = np.unique(np.rint(np.geomspace(1, ${DATA.last}, 241)))`, "curve = rm.Curve(t, rm.influence(model, t))");
    } else {
      const extras = [];
      if (s.bias) extras.push(`bias=rm.PromptBias(${s.strength}, offset=${s.offset})`);
      if (s.remind) extras.push(`reminders=rm.Reminders(every=${s.every}, length=${s.length})`);
      lines.splice(0, 1);
      lines.push(`curve = rm.simulate(${["model", DATA.last, ...extras].join(", ")})`);
    }
    lines.push(`print(rm.fit_power_law(curve, t_min=${s.from}, t_max=${s.to}))`);
    return lines.join("\n") + "\n";
  }

  // ---- actions ----------------------------------------------------------------------------------------------------

  async function copy(text, what) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no clipboard for pages from files, in some browsers
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    get("copied").textContent = done ? `${what} copied` : `${what} could not be copied`;
    setTimeout(() => { get("copied").textContent = ""; }, 3000);
  }

  get("copy-link").addEventListener("click", () => copy(location.href.split("#")[0] + fragment(), "Link"));
  get("copy-python").addEventListener("click", () => copy(python(), "Python code"));
  get("print").addEventListener("click", () => window.print());
  document.querySelectorAll(".share details").forEach((details) => details.addEventListener("toggle", () => refresh()));
  get("read").addEventListener("input", (event) => { read = Math.round(10 ** (event.target.value / 48)); refresh("read"); });
  get("plot").addEventListener("pointermove", (event) => {
    const bounds = get("plot").getBoundingClientRect();
    read = Math.max(1, Math.round(panels.scales(box).time((event.clientX - bounds.left) * box.width / bounds.width)));
    refresh("read");
  });
  get("legend").addEventListener("change", (event) => {
    DATA.curves[event.target.dataset.curve].shown = event.target.checked;
    refresh();
  });
  window.addEventListener("hashchange", () => { warn(follow(location.hash)); refresh(); });
  new ResizeObserver(() => { if (measureBox()) redraw(); }).observe(get("plot"));

  function warn(wrong) {
    get("copied").textContent = wrong.length ? `Left out of the link: ${wrong.join("; ")}` : "";
  }

  build();
  warn(follow(location.hash));
  measureBox();
  synchronise();
  redraw();

  window.explore = { state, redraw, python, fragment, change, presets: PRESETS, fields: FIELDS, get view() { return view; } };
})();
