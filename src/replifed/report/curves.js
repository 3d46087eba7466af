// Draws the curves of an artefact as SVG in place of its picture. Its data are from `report/curves.py`.
"use strict";
const drawCurves = (() => {
  const WIDTH = 440, HEIGHT = 290, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 46;
  const inner = [WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM];
  let panels = 0;  // drawn so far, for ids

  function add(parent, name, attributes = {}, text = null) {
    const inSvg = name === "svg" || parent.namespaceURI === "http://www.w3.org/2000/svg";
    const made = inSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.append(made);
    return made;
  }

  function format(number) {
    const size = Math.abs(number);
    if (size === 0 || (size >= 1e-3 && size < 1e5)) return String(Number(number.toPrecision(4)));
    return Number(number.toPrecision(4)).toExponential().replace("e+", "e");
  }

  // Numbers that stand on an axis.
  function ticks(low, high, log) {
    if (log && high / low > 8) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      const every = Math.max(1, Math.ceil((last - first + 1) / 6)), found = [];
      for (let power = first; power <= last; power += every)
        for (const factor of last - first < 2 ? [1, 2, 5] : [1]) found.push(factor * 10 ** power);
      return found.filter(one => one <= high * 1.0001);
    }
    const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find(one => one * power >= raw) * power, found = [];
    for (let one = Math.ceil(low / step); one * step <= high * (1 + 1e-12); one++) found.push(one * step);
    return found;
  }

  // An axis: where a number lies on it, from 0 to `length`.
  function scale(values, log, length, margin) {
    const usable = values.filter(one => one !== null && Number.isFinite(one) && (!log || one > 0));
    let low = Math.min(...usable), high = Math.max(...usable);
    if (!usable.length) [low, high] = log ? [0.1, 1] : [0, 1];
    if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
    const grow = log ? (high / low) ** margin : (high - low) * margin;
    [low, high] = log ? [low / grow, high * grow] : [low - grow, high + grow];
    const at = one => length * (log ? Math.log(one / low) / Math.log(high / low) : (one - low) / (high - low));
    return { at, low, high, ticks: ticks(low, high, log) };
  }

  // What an axis has to show: of a curve that is lost on all seeds, where it starts.
  const shown = curve => curve.diverged && curve.diverged === curve.seeds ? curve.y.slice(0, 1) : curve.y;

  function drawPanel(into, data, panel, state, tell) {
    const box = add(into, "div", { class: "panel" });
    if (panel.title) add(box, "p", { class: "panel-title" }, panel.title);
    const [column, xLabel, xLog] = panel.x.find(one => one[0] === state.x) || panel.x[0];
    const logX = state.logX === null ? xLog : state.logX, logY = state.logY === null ? panel.log : state.logY;
    const curves = panel.curves.filter(one => !state.hidden.has(one.line));
    // What the paper prints: x is on the first of the axes.
    const published = panel.published.map(([said, at, up]) => [said, column === panel.x[0][0] ? at : null, up]);
    const x = scale([...curves.flatMap(one => one.x[column]), ...published.map(one => one[1])], logX, inner[0], 0.02);
    const y = scale([...curves.flatMap(shown), ...published.map(one => one[2])], logY, inner[1], 0.05);
    const name = `${panel.title ? `${panel.title}: ` : ""}${panel.y} against ${xLabel}`;
    const svg = add(box, "svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: 0, role: "img",
      "aria-label": `${name}; ${curves.length} curves. Arrow keys read their points.`,
    });
    const clip = `clip-${++panels}`;
    add(add(svg, "clipPath", { id: clip }), "rect", { x: 0, y: 0, width: inner[0], height: inner[1] });
    const plot = add(svg, "g", { transform: `translate(${LEFT} ${TOP})` });
    for (const one of x.ticks) {
      add(plot, "line", { x1: x.at(one), x2: x.at(one), y1: 0, y2: inner[1], class: "grid" });
      add(plot, "text", { x: x.at(one), y: inner[1] + 16, "text-anchor": "middle" }, format(one));
    }
    for (const one of y.ticks) {
      const height = inner[1] - y.at(one);
      add(plot, "line", { x1: 0, x2: inner[0], y1: height, y2: height, class: "grid" });
      add(plot, "text", { x: -6, y: height + 4, "text-anchor": "end" }, format(one));
    }
    add(plot, "path", { d: `M0 0V${inner[1]}H${inner[0]}`, class: "axis" });
    add(plot, "text", { x: inner[0] / 2, y: inner[1] + 36, "text-anchor": "middle" }, xLabel);
    const title = add(plot, "text", { x: -inner[1] / 2, y: -LEFT + 13, "text-anchor": "middle" }, panel.y);
    title.setAttribute("transform", "rotate(-90)");
    for (const [said, at, up] of published) {
      if (at !== null && (!logX || at > 0)) {
        const across = x.at(at), left = across < inner[0] / 2;
        add(plot, "path", { d: `M${across} 0V${inner[1]}`, class: "published" });
        add(plot, "text", { x: across + (left ? 4 : -4), y: 10, "text-anchor": left ? "start" : "end", class: "said-of" }, said);
      }
      if (up !== null && (!logY || up > 0)) {
        const height = inner[1] - y.at(up);
        add(plot, "path", { d: `M0 ${height}H${inner[0]}`, class: "published" });
        add(plot, "text", { x: 4, y: height - 4, class: "said-of" }, said);
      }
    }
    const within = add(plot, "g", { "clip-path": `url(#${clip})` });

    // Every curve's points that these axes can show, as [x, y, index], in pixels.
    const places = curves.map(curve => curve.y.map((value, i) => {
      const across = curve.x[column][i], fits = value !== null && across !== null && (!logX || across > 0);
      return fits && (!logY || value > 0) ? [x.at(across), inner[1] - y.at(value), i] : null;
    }).filter(Boolean));
    curves.forEach((curve, k) => {
      const [, colour, dashes, marked] = data.lines[curve.line];
      const height = value => inner[1] - y.at(Math.min(Math.max(value, y.low), y.high));
      if (curve.low && curve.high) {
        const ends = places[k].filter(([, , i]) => curve.low[i] !== null && curve.high[i] !== null);
        const band = [...ends.map(([at, , i]) => [at, height(curve.high[i])]),
          ...ends.map(([at, , i]) => [at, height(curve.low[i])]).reverse()];
        if (band.length) add(within, "polygon", { points: band.join(" "), fill: colour, "fill-opacity": 0.13 });
      }
      const points = places[k].map(([at, up]) => `${at.toFixed(1)},${up.toFixed(1)}`);
      if (points.length > 1 && !marked) {
        add(within, "polyline", { points: points.join(" "), stroke: colour, "stroke-dasharray": dashes, class: "curve" });
      }
      if (marked || points.length < 12) {
        for (const [at, up] of places[k]) {
          add(within, "circle", { cx: at, cy: up, r: marked ? 4 : 2.5, stroke: colour, fill: marked ? "none" : colour });
        }
      }
    });

    const dot = add(plot, "circle", { r: 4.5, class: "dot", visibility: "hidden" });
    const tip = add(plot, "text", { class: "tip", visibility: "hidden" });
    let now = [0, -1];
    function show(k, n) {
      now = [k, n];
      const [at, up, i] = places[k][n], curve = curves[k], [label, colour] = data.lines[curve.line];
      const band = curve.low && curve.low[i] !== null ? ` [${format(curve.low[i])}, ${format(curve.high[i])}]` : "";
      const lost = curve.diverged ? `, ${curve.diverged} diverged` : "";
      const seeds = curve.seeds ? `; ${curve.seeds} seeds${lost}` : "";
      const words = [label, `${format(curve.x[column][i])} → ${format(curve.y[i])}${band}`];
      for (const [key, value] of [["cx", at], ["cy", up], ["stroke", colour]]) dot.setAttribute(key, value);
      tip.replaceChildren();
      const left = at < inner[0] / 2, above = up > 44;
      words.forEach((word, line) => add(tip, "tspan", {
        x: at + (left ? 10 : -10), y: up + (above ? -26 : 20) + 15 * line, "text-anchor": left ? "start" : "end",
      }, word));
      for (const one of [dot, tip]) one.setAttribute("visibility", "visible");
      tell(`${label}: ${xLabel} ${format(curve.x[column][i])}, ${panel.y} ${format(curve.y[i])}${band}${seeds}`);
    }
    function hide() {
      for (const one of [dot, tip]) one.setAttribute("visibility", "hidden");
    }
    svg.addEventListener("pointermove", event => {
      const frame = svg.getBoundingClientRect(), ratio = WIDTH / frame.width;
      const across = (event.clientX - frame.left) * ratio - LEFT, down = (event.clientY - frame.top) * ratio - TOP;
      let best = null, least = Infinity;
      places.forEach((points, k) => points.forEach(([at, up], n) => {
        const far = Math.hypot(at - across, Math.min(Math.max(up, 0), inner[1]) - down);
        if (far < least) [best, least] = [[k, n], far];
      }));
      if (best) show(...best);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", event => {
      const turn = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const drawn = places.map((points, k) => k).filter(k => places[k].length);
      if (!turn || !drawn.length) return;
      event.preventDefault();
      const next = drawn.indexOf(now[0]) + turn[0], k = drawn[(next + drawn.length) % drawn.length];
      show(k, Math.min(Math.max(now[1] + turn[1], 0), places[k].length - 1));
    });
  }

  function choice(parent, text, options, onChange) {
    const label = add(parent, "label", {}, `${text} `), select = add(label, "select");
    options.forEach(([value, words]) => add(select, "option", { value }, words));
    select.addEventListener("change", () => onChange(select.value));
  }

  function toggle(parent, text, pressed, onChange) {
    const button = add(parent, "button", { type: "button", "aria-pressed": pressed }, text);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", on);
      onChange(on);
    });
    return button;
  }

  return (into, data) => {
    const pages = [...new Set(data.panels.map(one => one.page))], first = data.panels[0];
    const axes = new Map(data.panels.flatMap(one => one.x).map(([column, label]) => [column, label || column]));
    const state = { page: pages[0], x: first.x[0][0], logX: null, logY: null, hidden: new Set() };
    const controls = add(into, "div", { class: "controls" });
    const redraw = () => {
      drawing.replaceChildren();
      for (const panel of data.panels) if (panel.page === state.page) drawPanel(drawing, data, panel, state, tell);
    };
    if (pages.length > 1) {
      choice(controls, "Shown", pages.map(one => [one, one]), value => { state.page = value; redraw(); });
    }
    const logX = () => (first.x.find(one => one[0] === state.x) || first.x[0])[2];
    if (axes.size > 1) choice(controls, "Horizontal axis", [...axes], value => {
      [state.x, state.logX] = [value, null];
      across.setAttribute("aria-pressed", logX());
      redraw();
    });
    const across = toggle(controls, "log x", logX(), on => { state.logX = on; redraw(); });
    toggle(controls, "log y", first.log, on => { state.logY = on; redraw(); });
    const legend = add(into, "div", { class: "legend", role: "group", "aria-label": "Curves" });
    const buttons = data.lines.map(([label, colour, dashes, marked], line) => {
      const button = toggle(legend, "", true, on => { state.hidden[on ? "delete" : "add"](line); redraw(); });
      const swatch = add(button, "svg", { viewBox: "0 0 30 10", width: 30, height: 10, "aria-hidden": true });
      if (marked) add(swatch, "circle", { cx: 15, cy: 5, r: 4, stroke: colour, fill: "none" });
      else add(swatch, "line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: colour, "stroke-dasharray": dashes, class: "curve" });
      add(button, "span", {}, label);
      return button;
    });
    if (buttons.length > 3) {
      add(legend, "button", { type: "button" }, "all / none").addEventListener("click", () => {
        const on = state.hidden.size > 0;
        buttons.forEach((button, line) => {
          button.setAttribute("aria-pressed", on);
          state.hidden[on ? "delete" : "add"](line);
        });
        redraw();
      });
    }
    const drawing = add(into, "div", { class: "panels" });
    const said = add(into, "output", { class: "said" }, "Point at a curve, or use the arrow keys, to read it.");
    const tell = text => { said.textContent = text; };
    redraw();
  };
})();
