"use strict";
(() => {
  const root = document.documentElement;
  const narrow = window.matchMedia("(max-width: 72rem)");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)");

  // -- charts: one plot per set of axes, drawn one after another so that the page stays quick
  const ink = () => getComputedStyle(document.body).color;
  const config = (name) => ({
    responsive: true,
    displaylogo: false,
    showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: name },
  });

  // numbers in cells: as large as fits, none where they could not be read
  function fit(trace, width) {
    const longest = Math.max(1, ...trace.text.flat().map((t) => t.length));
    const size = Math.min(12, (width - 150) / trace.x.length / (0.9 * longest)); // 150: axis and colour bar
    if (size < 7) delete trace.texttemplate;
    else trace.textfont = { size };
  }

  async function draw(figure) {
    const parts = JSON.parse(figure.querySelector("script.data").textContent);
    const plots = [...figure.querySelectorAll(".plot")];
    for (const [i, part] of parts.entries()) {
      part.layout.font.color = ink();
      part.layout.hoverlabel = { font: { family: part.layout.font.family } };
      if (touch.matches) part.layout.dragmode = false; // a finger scrolls the page
      const slim = part.layout.xaxis.type === "linear" && plots[i].clientWidth < 420;
      if (slim) Object.assign(part.layout.xaxis, { nticks: 4, tickangle: 0 });
      for (const trace of part.data) if (trace.type === "heatmap") fit(trace, plots[i].clientWidth);
      await Plotly.newPlot(plots[i], part.data, part.layout, config(figure.id));
    }
  }

  function toggle(figure, keys, key, alone) {
    const shown = (k) => k.getAttribute("aria-pressed") === "true";
    const only = alone && keys.every((k) => shown(k) === (k === key)); // already alone: show all again
    for (const k of keys) {
      const on = alone ? only || k === key : k === key ? !shown(k) : shown(k);
      if (on === shown(k)) continue;
      k.setAttribute("aria-pressed", String(on));
      for (const plot of figure.querySelectorAll(".plot")) {
        const mine = plot.data.flatMap((t, i) => (t.legendgroup === k.dataset.key ? [i] : []));
        if (mine.length) Plotly.restyle(plot, { visible: on }, mine);
      }
    }
  }

  const figures = [...document.querySelectorAll("figure.chart")];
  for (const figure of figures) {
    const keys = [...figure.querySelectorAll(".key")];
    for (const key of keys) {
      key.addEventListener("click", (e) => toggle(figure, keys, key, e.shiftKey));
      key.addEventListener("dblclick", () => toggle(figure, keys, key, true));
    }
  }
  (async () => {
    for (const figure of figures) {
      try {
        await draw(figure);
      } catch (error) {
        figure.classList.add("undrawn"); // the printed version is shown instead
        console.error(error);
      }
      await new Promise((next) => setTimeout(next));
    }
    root.dataset.drawn = String(figures.length);
  })();
  dark.addEventListener("change", () => {
    for (const plot of document.querySelectorAll(".plot.js-plotly-plot")) Plotly.relayout(plot, { "font.color": ink() });
  });

  // -- tables: numbers by number, words by the reader's alphabet, what is missing last
  const alphabet = new Intl.Collator(undefined, { numeric: true });
  function sort(table, column, head) {
    const down = head.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const value = (row) => row.cells[column].dataset.value;
    const text = (row) => row.cells[column].textContent;
    const missing = (row) => value(row) === undefined && ["", "–"].includes(text(row));
    const order = (a, b) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const [x, y] = [value(a), value(b)];
      const found = x !== undefined && y !== undefined ? x - y : x !== undefined ? -1 : y !== undefined ? 1 : alphabet.compare(text(a), text(b));
      return down ? -found : found;
    };
    body.append(...[...body.rows].sort(order));
    for (const th of table.tHead.rows[0].cells) th.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }
  for (const table of document.querySelectorAll(".table table"))
    [...table.tHead.rows[0].cells].forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(table, column, head)));

  // -- contents: folded on a narrow screen; everything unfolded on paper
  const contents = document.querySelector("nav details");
  const fold = () => { if (contents) contents.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const d of folded) d.open = true;
  });
  window.addEventListener("afterprint", () => { for (const d of folded) d.open = false; });
})();
