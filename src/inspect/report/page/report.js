/* Script of the report: zoomable plots in place of the drawings, smoothing, RNA chains that turn. Without it the
   page is complete. Without dygraphs, which the build may lack, the drawings stay. */
(function () {
  "use strict";
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const root = document.documentElement;
  const smoothing = document.getElementById("smoothing");
  const drawn = [];

  const colour = (i) => getComputedStyle(root).getPropertyValue("--c" + i).trim();
  const named = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  /* --- numbers as text --- */

  const short = (v, digits) => String(Number(v.toPrecision(digits)));

  function axisText(v, unit) {
    if (unit === "share") return short(100 * v, 3) + " %";
    if (unit === "bytes") return v >= 1073741824 ? short(v / 1073741824, 3) + " GiB" : short(v / 1048576, 3) + " MiB";
    if (unit === "seconds") return v >= 7200 ? short(v / 3600, 3) + " h" : v >= 120 ? short(v / 60, 3) + " min" : short(v, 3) + " s";
    if (Math.abs(v) >= 1e6) return short(v / 1e6, 4) + "M";
    return Math.abs(v) >= 1e4 ? short(v / 1e3, 4) + "k" : short(v, 4);
  }

  /* Ticks of an axis of seconds at round seconds, minutes or hours. */
  const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
  function secondTicks(low, high, pixels) {
    const step = steps.find((s) => (high - low) / s <= Math.max(2, pixels / 80)) || (high - low) / 4 || 1, ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) ticks.push({ v, label: axisText(v, "seconds") });
    return ticks;
  }

  /* Ticks of an axis of bytes at powers of two. */
  function byteTicks(low, high, pixels) {
    const step = Math.pow(2, Math.ceil(Math.log2((high - low) / Math.max(2, pixels / 45)))), ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) ticks.push({ v, label: axisText(v, "bytes") });
    return ticks;
  }

  /* --- data --- */

  function undelta(x) {
    let sum = 0;
    return x.map((d) => (sum += d));
  }

  const finite = (v) => v !== null && isFinite(v);

  /* Centred mean over `width` points; gaps stay gaps. */
  function smooth(values, width) {
    const half = Math.floor(width / 2), out = new Array(values.length);
    let sum = 0, count = 0, from = 0, to = 0;
    for (let i = 0; i < values.length; ++i) {
      for (; to < values.length && to <= i + half; ++to) if (finite(values[to])) { sum += values[to]; ++count; }
      for (; from < i - half; ++from) if (finite(values[from])) { sum -= values[from]; --count; }
      out[i] = count && finite(values[i]) ? sum / count : NaN;
    }
    return out;
  }

  /* The series of a plot for dygraphs: {x, y, line, faint}. A noisy line is shown faint below its mean. */
  function seriesOf(plot) {
    const strength = smoothing ? Number(smoothing.value) / 100 : 0;
    const all = [];
    for (const line of plot.lines) {
      const means = line.mean_y ? { x: line.mean_x, y: line.mean_y } : { x: line.x, y: line.y };
      const width = 1 + 2 * Math.round(strength * strength * means.y.length / 6);
      const smoothed = line.noisy && means.y.length > 40 && (strength > 0 || line.mean_y);
      all.push({ x: line.x, y: line.y.map((v) => (v === null ? NaN : v)), line, faint: smoothed });
      if (smoothed) all.push({ x: means.x, y: smooth(means.y, width), line, faint: false });
    }
    return all;
  }

  /* Rows [x, y...] over the union of all x; null: this series has no point there. */
  function rowsOf(series) {
    const xs = [...new Set(series.flatMap((s) => s.x))].sort((a, b) => a - b);
    const place = new Map(xs.map((x, i) => [x, i]));
    const rows = xs.map((x) => [x].concat(new Array(series.length).fill(null)));
    series.forEach((s, k) => s.x.forEach((x, i) => { rows[place.get(x)][k + 1] = s.y[i]; }));
    return rows;
  }

  /* --- plots --- */

  function looksOf(series) {
    const looks = {};
    series.forEach((s, k) => {
      looks["s" + k] = {
        color: colour(s.line.colour), strokeWidth: s.faint ? 1 : s.line.noisy ? 2 : 1.7, strokePattern: s.line.dashed ? [6, 4] : null,
        drawPoints: s.line.points && !s.faint, pointSize: 2.5,
      };
    });
    return looks;
  }

  /* A faint line keeps its hue, close to the background of the page. */
  function coloursOf(series) {
    return series.map((s) => (s.faint ? "color-mix(in srgb, " + colour(s.line.colour) + " 32%, " + named("--ground") + ")" : colour(s.line.colour)));
  }

  function optionsOf(plot, series) {
    const looks = looksOf(series), colours = coloursOf(series);
    series.forEach((s, k) => { looks["s" + k].color = resolve(colours[k]); });
    return {
      labels: ["x"].concat(series.map((s, k) => "s" + k)), series: looks, axisLineColor: named("--line"), gridLineColor: named("--grid"),
      logscale: plot.log,
    };
  }

  /* A CSS colour as rgb(), which dygraphs understands. */
  const probe = document.createElement("i");
  document.body.appendChild(probe).style.display = "none";
  function resolve(css) {
    probe.style.color = css;
    const parts = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
    const scale = getComputedStyle(probe).color.startsWith("color(") ? 255 : 1;
    return "rgb(" + parts.slice(0, 3).map((v) => Math.round(v * scale)).join(",") + ")";
  }

  /* One finger scrolls the page; two zoom. */
  function touchModel() {
    const model = Object.assign({}, Dygraph.defaultInteractionModel);
    for (const name of ["touchstart", "touchmove", "touchend"]) {
      const usual = model[name];
      model[name] = (event, g, context) => { if (event.touches.length > 1 || context.initialTouches && context.initialTouches.length > 1) usual(event, g, context); };
    }
    return model;
  }

  function showValues(figure, plot, series, x) {
    const outputs = figure.querySelectorAll(".legend output");
    plot.lines.forEach((line, i) => {
      const best = series.filter((s) => s.line === line).pop();
      let value = null;
      for (let k = 0; k < best.x.length && best.x[k] <= x; ++k) if (finite(best.y[k])) value = best.y[k];
      outputs[i].textContent = x === null || value === null ? "" : axisText(value, plot.unit);
    });
  }

  function zoomOthers(entry) {
    const range = entry.graph.isZoomed("x") ? entry.graph.xAxisRange() : null;
    for (const other of drawn)
      if (other !== entry && other.plot.seconds === entry.plot.seconds && other.plot.id !== "memory-step") other.graph.updateOptions({ dateWindow: range });
  }

  function drawPlot(figure, plot) {
    for (const line of plot.lines) {
      line.x = undelta(line.x);
      if (line.mean_x) line.mean_x = undelta(line.mean_x);
    }
    const entry = { figure, plot, series: seriesOf(plot) };
    figure.classList.add("live");
    entry.graph = new Dygraph(figure.querySelector(".canvas"), rowsOf(entry.series), Object.assign(optionsOf(plot, entry.series), {
      legend: "never", connectSeparatedPoints: true, includeZero: plot.zero, xRangePad: 4, rightGap: 14, yRangePad: 6, highlightCircleSize: 3, interactionModel: touchModel(),
      axes: {
        x: Object.assign({ axisLabelFormatter: (v) => axisText(v, ""), axisLabelWidth: 64, pixelsPerLabel: 70 }, plot.seconds ? { ticker: secondTicks } : {}),
        y: Object.assign({ axisLabelFormatter: (v) => axisText(v, plot.unit), axisLabelWidth: 58, pixelsPerLabel: 38 }, plot.unit === "bytes" ? { ticker: byteTicks } : {}),
      },
      highlightCallback: (event, x) => showValues(figure, plot, entry.series, x),
      unhighlightCallback: () => showValues(figure, plot, entry.series, null),
      zoomCallback: () => zoomOthers(entry),
    }));
    if (plot.can_log) addLogButton(entry);
    drawn.push(entry);
    figure.dataset.drawn = "plot";
  }

  function addLogButton(entry) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "log";
    button.title = "logarithmic scale";
    button.setAttribute("aria-pressed", entry.plot.log);
    button.addEventListener("click", () => {
      entry.plot.log = !entry.plot.log;
      button.setAttribute("aria-pressed", entry.plot.log);
      entry.graph.updateOptions({ logscale: entry.plot.log });
    });
    entry.figure.querySelector("figcaption").appendChild(button);
  }

  function redraw(noisyOnly) {
    for (const entry of drawn) {
      if (noisyOnly && !entry.plot.lines.some((line) => line.noisy)) continue;
      entry.series = seriesOf(entry.plot);
      entry.graph.updateOptions(Object.assign(optionsOf(entry.plot, entry.series), { file: rowsOf(entry.series) }));
    }
  }

  /* --- RNA --- */

  function path(points, turn) {
    let pen = "M", d = "";
    for (const p of points) {
      if (!p) { pen = "M"; continue; }
      const x = p[0] * turn[0] + p[1] * turn[1] + p[2] * turn[2], y = p[0] * turn[3] + p[1] * turn[4] + p[2] * turn[5];
      d += pen + (120 + x / 10).toFixed(1) + " " + (120 - y / 10).toFixed(1);
      pen = "L";
    }
    return d;
  }

  /* Turns by dragging: sideways about the vertical axis, up and down about the horizontal one. */
  function turnable(svg) {
    const chains = ["truth", "prediction"].map((name) => [svg.querySelector(".trace." + name), JSON.parse(svg.dataset[name])]);
    let a = 0, b = 0, from = null;
    svg.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY]; svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointerup", () => { from = null; });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      a += (event.clientX - from[0]) / 90;
      b += (event.clientY - from[1]) / 90;
      from = [event.clientX, event.clientY];
      const turn = [Math.cos(a), 0, Math.sin(a), Math.sin(b) * Math.sin(a), Math.cos(b), -Math.sin(b) * Math.cos(a)];
      for (const [element, points] of chains) element.setAttribute("d", path(points, turn));
    });
  }

  function addCopyButton(pre) {
    if (!navigator.clipboard) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", () => navigator.clipboard.writeText(pre.querySelector("code").textContent).then(() => { button.textContent = "copied"; }, () => {}));
    pre.prepend(button);
  }

  /* --- start --- */

  const zoomable = typeof Dygraph !== "undefined";
  root.classList.add("scripts");
  if (zoomable) root.classList.add("zoom");
  const figures = new Map([...document.querySelectorAll("figure[data-plot]")].map((figure) => [figure.dataset.plot, figure]));
  for (const plot of plots) if (zoomable && figures.has(plot.id)) drawPlot(figures.get(plot.id), plot);
  document.querySelectorAll("svg.rna").forEach(turnable);
  document.querySelectorAll("pre.command").forEach(addCopyButton);
  if (smoothing) smoothing.addEventListener("input", () => redraw(true));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(false));
  root.dataset.plots = drawn.length;
})();
