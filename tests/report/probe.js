/* Runs inside a report during the browser test: uses the page as a person would, and sends what it saw to the
   frame around it. */
(function () {
  "use strict";
  /* Pixels of lines: the grid and the axes are grey. */
  const drawnPixels = (canvas) => {
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
    let count = 0;
    for (let i = 0; i < data.length; i += 4)
      count += data[i + 3] > 40 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 40;
    return count;
  };
  const most = (elements, of) => Math.max(0, ...[...elements].map(of));
  const seen = () => {
    const plots = [...document.querySelectorAll("figure[data-plot]")].map((figure) => ({
      id: figure.dataset.plot, drawn: figure.dataset.drawn || null, canvases: figure.querySelectorAll(".canvas canvas").length,
      pixels: most(figure.querySelectorAll(".canvas canvas"), drawnPixels), drawing: figure.querySelector(".drawing svg").getBoundingClientRect().height,
      lines: figure.querySelectorAll(".drawing svg path.line").length,
    }));
    const right = most(document.querySelectorAll("main *"), (e) => e.closest(".scroll") || e.closest("svg") ? 0 : e.getBoundingClientRect().right);
    return {
      plots, width: innerWidth, overflow: Math.max(document.documentElement.scrollWidth - innerWidth, Math.ceil(right) - innerWidth),
      dark: getComputedStyle(document.body).backgroundColor, copies: document.querySelectorAll("pre.command button").length,
      commands: document.querySelectorAll("pre.command").length,
      smallest: Math.min(...[...document.querySelectorAll("main p, main td, main dd, main summary")].filter((e) => e.offsetHeight).map((e) => parseFloat(getComputedStyle(e).fontSize))),
    };
  };

  /* Zooms by dragging across the first plot; the others must follow. */
  function zoom() {
    const canvas = document.querySelector("figure.live .canvas canvas:last-of-type"), box = canvas.getBoundingClientRect();
    const send = (kind, x) => canvas.dispatchEvent(new MouseEvent(kind, { bubbles: true, clientX: box.left + x * box.width, clientY: box.top + box.height / 2, button: 0, detail: 1 }));
    send("mousedown", 0.3);
    for (const x of [0.35, 0.45, 0.6]) send("mousemove", x);
    send("mouseup", 0.6);
  }

  const labels = () => [...document.querySelectorAll("figure.live")].map((f) => [...f.querySelectorAll(".dygraph-axis-label-x")].map((l) => l.textContent).join(" "));
  const trace = () => [...document.querySelectorAll("svg.rna path.trace")].map((p) => p.getAttribute("d")).join();

  window.addEventListener("load", () => setTimeout(() => {
    const result = seen();
    if (document.querySelector("figure.live")) {
      const before = labels(), slider = document.getElementById("smoothing"), turned = trace();
      zoom();
      result.zoomed = labels().filter((text, i) => text !== before[i]).length;
      for (const button of document.querySelectorAll("figure button")) button.click();
      slider.value = 90;
      slider.dispatchEvent(new Event("input"));
      const rna = document.querySelector("svg.rna");
      if (rna) {
        const event = (kind, x) => { const e = new PointerEvent(kind, { bubbles: true, clientX: x, clientY: x, pointerId: 1 }); rna.dispatchEvent(e); };
        rna.setPointerCapture = () => {};
        event("pointerdown", 10);
        event("pointermove", 90);
        event("pointerup", 90);
        result.turned = trace() !== turned && !/NaN/.test(trace());
      }
      result.after = seen().plots.map((plot) => plot.pixels);
    }
    parent.postMessage(JSON.stringify(result), "*");
  }, 50));
})();
