// The pictures of the optimum: the value along a slider, the map with its frontier, the policy; and every picture as an SVG file.
"use strict";
{
  const $ = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#767676", "#8c6bb1", "#a6761d", "#1b9e77"];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const figure = (x, digits = 4) => (x === null || x === undefined ? "–" : Number(x.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: true }));
  const cost = (x) => (Math.abs(x) < 5e-13 ? "0" : `${x > 0 ? "−" : "+"}${figure(Math.abs(x), 3)}`);
  const drawn = {}; // the last part of each kind, to draw again in another theme

  function layout(more) {
    const axis = { gridcolor: colour("--line"), zeroline: false, linecolor: colour("--line"), tickcolor: colour("--line"), automargin: true, fixedrange: true };
    const made = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 8, r: 12, t: 10, b: 8 }, showlegend: false, dragmode: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: colour("--ink") },
      hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: colour("--ink") } }, ...more,
    };
    made.xaxis = { ...axis, ...more.xaxis };
    made.yaxis = { ...axis, ...more.yaxis };
    return made;
  }
  const config = { responsive: true, displayModeBar: false, displaylogo: false, showSendToCloud: false, plotlyServerURL: "", scrollZoom: false, doubleClick: false };

  async function plot(id, data, shape, told) {
    const place = $(id).querySelector(".plot");
    place.setAttribute("aria-label", told);
    await Plotly.react(place, data, layout(shape), config);
    place.dataset.drawn = String(Number(place.dataset.drawn ?? 0) + 1);
  }

  // -- numbers
  function optimum(part) {
    drawn.optimum = part;
    $("value").textContent = figure(part.value, 5);
    $("full").textContent = figure(part.full, 5);
    $("price-value").textContent = figure(part.price, 4);
    const width = part.upper - part.lower;
    $("value-note").textContent = part.exact ? "exact" : part.final ? `certified: at most ${figure(part.upper, 5)}` : `so far; at most ${figure(part.upper, 5)}`;
    $("value-note").title = part.link;
    $("price-note").textContent = part.full ? `${figure((100 * part.price) / Math.abs(part.full), 3)} % of full information` : " ";
    $("value").dataset.value = part.value;
    $("value").dataset.width = width;
  }

  // -- the value along a slider
  function curve(part) {
    drawn.curve = part;
    const f = Old.fields.get(part.axis);
    const x = part.points.map((p) => p.x);
    const loose = part.points.some((p) => p.high - p.low > 1e-6);
    const unit = f.unit ? ` [${f.unit}]` : "";
    const known = colour("--known");
    const data = [
      { x, y: part.points.map((p) => p.full), mode: "lines", line: { color: colour("--far"), width: 1.5, dash: "dot" }, hovertemplate: "full information %{y:.4f}<extra></extra>" },
    ];
    if (loose) data.push(
      { x, y: part.points.map((p) => p.low), mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
      { x, y: part.points.map((p) => p.high), mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: `${known}33`, hoverinfo: "skip" });
    data.push({ x, y: part.points.map((p) => p.low), mode: "lines+markers", line: { color: known, width: 2.2 }, marker: { size: 6, color: known }, hovertemplate: `%{x} ${f.unit}: %{y:.4f}<extra></extra>` });
    const here = part.points.find((p) => p.x === part.here);
    if (here) data.push({ x: [here.x], y: [here.low], mode: "markers", marker: { size: 13, color: colour("--card"), line: { color: colour("--accent"), width: 3 } }, hoverinfo: "skip" });
    const low = Math.min(...part.points.map((p) => p.low)), high = Math.max(...part.points.map((p) => p.full)), pad = 0.06 * (high - low || 1);
    const told = `The value along ${f.label.toLowerCase()}: ${part.points.map((p) => `${p.x}: ${figure(p.low)}`).join(", ")}`;
    $("price").querySelector("figcaption").textContent =
      `The best value that can be executed at each ${f.label.toLowerCase()}, everything else as it is; dotted: if everything were seen at once.` +
      (loose ? " Shaded: between the bounds on the optimum." : "") + (part.note ? ` ${part.note}` : "") + (part.final ? "" : ` ${part.points.length} of ${part.of} points.`);
    const exact = x.length <= 11 && f.step >= 1 ? { tickmode: "array", tickvals: x } : {};
    return plot("price", data, { xaxis: { title: { text: `${f.label.toLowerCase()}${unit}`, standoff: 8 }, ...exact }, yaxis: { title: { text: "value", standoff: 8 }, range: [low - pad, high + pad] } }, told);
  }

  function prices(part) {
    drawn.prices = part;
    const words = { delay: "step of delay", jitter: "step of jitter", loss: "percent of loss", burst: "step of burst", period: "step of sensor period" };
    const list = $("price").querySelector(".prices");
    list.replaceChildren(...part.rows.map((row) => {
      const item = document.createElement("li");
      item.innerHTML = `<b></b> <span></span>`;
      const by = row.by ?? 1, loose = row.high - row.low > 0.02 * Math.abs(row.cost) + 1e-9; // the bounds have not met: say between what
      item.querySelector("b").textContent = loose ? `${cost(row.high / by)} to ${cost(row.low / by)}` : cost(row.cost / by);
      item.querySelector("span").textContent = `per ${words[row.name]}`;
      return item;
    }));
  }

  // -- the map and its frontier: rows by loss, columns by delay, drawn at their numbers so that rows are equally high
  const place = (levels, x) => {
    const i = levels.findIndex((y) => y >= x);
    if (i < 0) return levels.length - 1;
    return i === 0 ? 0 : i - 1 + (x - levels[i - 1]) / (levels[i] - levels[i - 1]);
  };

  function frontierLine(part, target) {
    const wanted = (target / 100) * part.full;
    const worst = part.full >= 0 ? wanted : part.full - (1 - target / 100) * Math.abs(part.full);
    return part.delays.map((_, j) => {
      const column = part.rows.map((row) => row[j]);
      if (column[0] === null || column[0] < worst) return null;
      const i = column.findIndex((v) => v === null || v < worst);
      if (i < 0) return column.length - 1;
      if (column[i] === null) return i - 1;
      return i - 1 + (column[i - 1] - worst) / (column[i - 1] - column[i]);
    });
  }

  const certified = (part, point) => (point && point.loss !== null ? place(part.losses, 100 * point.loss) : null);

  function need(part) {
    drawn.need = part;
    return part.final && drawn.frontier ? frontier(drawn.frontier) : undefined;
  }

  function frontier(part) {
    drawn.frontier = part;
    const box = $("frontier"), { view, position } = Old.choices;
    if (part.rows === null) {
      box.querySelector("figcaption").textContent = "The map is drawn over delay and loss: it needs a link that the sliders say.";
      Plotly.purge(box.querySelector(".plot"));
      return undefined;
    }
    const share = part.rows.map((row) => row.map((v) => (v === null || !part.full ? null : (100 * v) / part.full)));
    const sure = drawn.need?.target === view.target && drawn.need.final ? drawn.need : null; // certified, from the library
    const line = sure ? part.delays.map((d) => certified(part, sure.points.find((p) => p.delay === d))) : frontierLine(part, view.target);
    const all = share.flat().filter((v) => v !== null);
    const data = [
      { type: "heatmap", x: part.delays, y: part.losses.map((_, i) => i), z: share, xgap: 2, ygap: 2, hoverongaps: false, zmin: Math.max(0, Math.min(...all, 100)), zmax: 100,
        colorscale: dark.matches ? [[0, "#2a211f"], [0.35, "#3c4a57"], [1, "#4f9fd4"]] : [[0, "#f6e7dc"], [0.35, "#c3d4de"], [1, "#2b7fb0"]],
        customdata: part.losses.map((q) => part.delays.map(() => q)), hovertemplate: "delay %{x}, loss %{customdata} %<br>%{z:.1f} % of full information<extra></extra>",
        colorbar: { thickness: 9, len: 0.94, outlinewidth: 0, ticksuffix: " %", tickfont: { size: 11 } } },
      { x: part.delays, y: line, mode: "lines+markers", line: { color: colour("--accent"), width: 2.6 }, marker: { size: 7, color: colour("--accent") }, connectgaps: false, hoverinfo: "skip" },
    ];
    const open = (part.open ?? []).flatMap((row, i) => row.flatMap((is, j) => (is ? [[part.delays[j], i]] : []))); // only a lower bound is certain there
    if (open.length)
      data.push({ x: open.map(([d]) => d), y: open.map(([, i]) => i), mode: "markers", marker: { symbol: "x-thin", size: 9, line: { color: colour("--ink"), width: 1.6 } }, hovertemplate: "at least this: the bounds do not meet<extra></extra>" });
    box.dataset.open = String(open.length);
    if (position.delay <= part.delays.at(-1) && position.loss <= part.losses.at(-1))
      data.push({ x: [position.delay], y: [place(part.losses, position.loss)], mode: "markers", marker: { size: 13, color: colour("--card"), line: { color: colour("--ink"), width: 3 } }, hovertemplate: "here<extra></extra>" });
    const reached = part.delays.filter((_, j) => line[j] !== null);
    const words = reached.map((d) => { const y = line[part.delays.indexOf(d)], i = Math.floor(y); const q = sure ? 100 * sure.points.find((p) => p.delay === d).loss : part.losses[i] + (y - i) * ((part.losses[i + 1] ?? part.losses[i]) - part.losses[i]); return `delay ${d}: ${figure(q, sure ? 3 : 2)} %${!sure && y >= part.losses.length - 1 ? " or more" : ""}`; });
    const said = words.length ? `To keep ${view.target} % of what full information earns, at most this much may be lost: ${words.join("; ")}.` : `No link of this map keeps ${view.target} % of what full information earns.`;
    box.querySelector("figcaption").textContent = `${said} ${sure ? (sure.points.some((p) => p.status === "not decided") ? "Certified, but for the delays that are missing." : "Certified on both sides.") : "Interpolated between the rows of the map."}` + (open.length ? ` Crosses mark ${open.length} ${open.length === 1 ? "plan" : "plans"} whose bounds do not meet: the colour is what is certain.` : "") + (part.final ? "" : ` ${part.done} of ${part.of} plans.`);
    return plot("frontier", data, {
      xaxis: { title: { text: "delay [steps]", standoff: 8 }, tickmode: "array", tickvals: part.delays, showgrid: false, range: [part.delays[0] - 0.55, part.delays.at(-1) + 0.55] },
      yaxis: { title: { text: "loss [%]", standoff: 8 }, tickmode: "array", tickvals: part.losses.map((_, i) => i), ticktext: part.losses.map(String), showgrid: false, range: [-0.55, part.losses.length - 0.45] },
    }, `Map of the value over delay and loss. ${said}`);
  }

  // -- the policy: time across, newest visible state up, the colour of the action that is chosen most, paler where others are chosen too
  const NS = "http://www.w3.org/2000/svg";
  function el(name, attributes = {}, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  const room = (box, least, most) => Math.max(least, Math.min(box.clientWidth || most, most)); // a drawing is as wide as its place: its letters keep their size
  const actionColour = (a) => COLOURS[a % COLOURS.length];

  function policy(part) {
    drawn.policy = part;
    const plant = Old.choices.plant();
    const H = part.actions.length, S = part.states.length, top = 6, width = room($("policy").querySelector(".drawing"), 280, 900);
    const left = 26 + 8 * Math.min(6, Math.max(...part.states.map((s) => String(plant.states[s]).length)));
    const cellW = (width - left - 6) / H, cellH = Math.max(7, Math.min(17, 320 / S)), height = top + S * cellH + 40;
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `The action chosen most at each time for each newest visible state; ${plant.actions.join(", ")}` });
    const every = Math.ceil(S / (320 / 15));
    part.states.forEach((s, i) => {
      const y = top + (S - 1 - i) * cellH;
      if (i % every === 0) svg.append(el("text", { x: left - 8, y: y + cellH / 2 + 4, "text-anchor": "end", "font-size": 11.5, class: "soft" }, String(plant.states[s]).slice(0, 8)));
      for (let h = 0; h < H; h += 1) {
        const a = part.actions[h][i];
        const cell = el("rect", { x: left + h * cellW + 0.7, y: y + 0.7, width: Math.max(cellW - 1.4, 0.5), height: cellH - 1.4, rx: 2, fill: a < 0 ? "none" : actionColour(a), "fill-opacity": a < 0 ? 0 : (0.25 + 0.75 * part.share[h][i]).toFixed(2) });
        if (a < 0) { cell.setAttribute("stroke", colour("--line")); cell.setAttribute("stroke-width", "0.6"); }
        cell.append(el("title", {}, a < 0 ? `time ${h}: state ${plant.states[s]} is never the newest seen` : `time ${h}, newest seen ${plant.states[s]}: ${plant.actions[a]} in ${figure(100 * part.share[h][i], 3)} % of ${part.visits[h][i]} times`));
        svg.append(cell);
      }
    });
    const tick = Math.ceil(H / 12);
    for (let h = 0; h < H; h += tick) svg.append(el("text", { x: left + (h + 0.5) * cellW, y: top + S * cellH + 14, "text-anchor": "middle", "font-size": 11.5, class: "soft" }, String(h)));
    svg.append(el("text", { x: left + (width - left) / 2, y: height - 6, "text-anchor": "middle", "font-size": 12.5 }, "time"));
    svg.append(el("text", { x: 13, y: top + (S * cellH) / 2, "text-anchor": "middle", "font-size": 12.5, transform: `rotate(-90 13 ${top + (S * cellH) / 2})` }, "newest seen state"));
    $("policy").querySelector(".drawing").replaceChildren(svg);
    $("policy").querySelector(".key").replaceChildren(...plant.actions.slice(0, 10).map((name, a) => {
      const item = document.createElement("li");
      item.innerHTML = "<i></i><span></span>";
      item.querySelector("i").style.background = actionColour(a);
      item.querySelector("span").textContent = name;
      return item;
    }));
    $("policy").querySelector("figcaption").textContent =
      `The action chosen most often in ${part.episodes.toLocaleString("en")} episodes of the optimum; paler where it depends on what was done since.` +
      (part.all_states ? "" : ` The ${part.states.length} states that are seen most.`);
    ages(part);
  }

  // -- how old the newest visible state is: a column for each time, from young to old, nothing seen yet on top
  function ages(part) {
    const H = part.ages.length, M = part.ages[0].length - 1, width = room($("ages").querySelector(".drawing"), 280, 900), left = 46, top = 6, tall = 300, height = top + tall + 40;
    const cellW = (width - left - 6) / H;
    const longest = Math.max(1, ...part.ages.map((row) => row.slice(0, -1).findLastIndex((p) => p > 0.001)));
    const shade = (m) => 0.95 - 0.75 * Math.min(m / longest, 1);
    const words = part.ages.map((row, h) => `time ${h}: ${figure(part.age[h], 3)} steps on average`);
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Age of the newest visible state; ${words.at(-1)}` });
    for (let h = 0; h < H; h += 1) {
      let y = top + tall;
      const x = left + h * cellW;
      for (let m = 0; m <= M; m += 1) {
        const p = part.ages[h][m], h2 = p * tall;
        if (p < 0.0005) continue;
        y -= h2;
        const nothing = m === M;
        const cell = el("rect", { x: x + 0.7, y: y + 0.5, width: Math.max(cellW - 1.4, 0.5), height: Math.max(h2 - 1, 0.4), rx: 2, fill: nothing ? "none" : "var(--known)", "fill-opacity": nothing ? 0 : shade(m).toFixed(2), stroke: nothing ? "var(--far)" : "none", "stroke-width": 0.8, "stroke-dasharray": "3 3" });
        cell.append(el("title", {}, `time ${h}: ${nothing ? "nothing seen yet" : `${m} steps old`} in ${figure(100 * p, 3)} %`));
        svg.append(cell);
        if (h2 > 17 && cellW > 24) svg.append(el("text", { x: x + cellW / 2, y: y + h2 / 2 + 4, "text-anchor": "middle", "font-size": 11.5, style: !nothing && shade(m) > 0.55 ? "fill:var(--card)" : "" }, nothing ? "–" : String(m)));
      }
    }
    for (const p of [0, 0.5, 1]) svg.append(el("text", { x: left - 7, y: top + tall * (1 - p) + 4 + (p === 1 ? 5 : 0), "text-anchor": "end", "font-size": 11.5, class: "soft" }, `${100 * p} %`));
    const tick = Math.ceil(H / 12);
    for (let h = 0; h < H; h += tick) svg.append(el("text", { x: left + (h + 0.5) * cellW, y: top + tall + 16, "text-anchor": "middle", "font-size": 11.5, class: "soft" }, String(h)));
    svg.append(el("text", { x: left + (width - left) / 2, y: height - 4, "text-anchor": "middle", "font-size": 12.5 }, "time"));
    $("ages").querySelector(".drawing").replaceChildren(svg);
    $("ages").querySelector("figcaption").textContent = `How many steps old the newest visible state is at each time, in the same episodes: ${figure(part.age.at(-1), 3)} on average at the end. Dashed: nothing has been seen yet.`;
  }

  // -- SVG files
  function save(svg, name) {
    const blob = new Blob([svg], { type: "image/svg+xml" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `oldlight-${name}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // drawings of this page as one file: the colours of the style sheet are written into it
  function standalone(drawings) {
    let y = 0;
    const whole = el("svg", { xmlns: NS });
    const style = `text{fill:${colour("--ink")};font-family:sans-serif}text.soft{fill:${colour("--soft")}}`;
    whole.append(el("style", {}, style));
    let widest = 0;
    for (const svg of drawings) {
      const [, , w, h] = svg.getAttribute("viewBox").split(" ").map(Number);
      const copy = svg.cloneNode(true);
      copy.removeAttribute("role");
      for (const [key, value] of [["x", 0], ["y", y], ["width", w], ["height", h]]) copy.setAttribute(key, value);
      whole.append(copy);
      y += h + 12;
      widest = Math.max(widest, w);
    }
    whole.setAttribute("viewBox", `0 0 ${widest} ${y}`);
    whole.setAttribute("width", widest);
    whole.setAttribute("height", y);
    return new XMLSerializer().serializeToString(whole).replace(/var\((--[\w-]+)\)/g, (_, name) => colour(name));
  }

  async function svgOf(id) {
    const place = $(id).querySelector(".plot");
    if (!place) return standalone([...$(id).querySelectorAll(".drawing svg")]);
    const url = await Plotly.toImage(place, { format: "svg", width: place.clientWidth, height: place.clientHeight });
    return decodeURIComponent(url.replace(/^data:image\/svg\+xml,/, ""));
  }

  const parts = { optimum, curve, prices, frontier, need, policy };
  dark.addEventListener("change", () => { for (const [name, part] of Object.entries(drawn)) if (part) parts[name](part); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width && drawn.policy) { width = innerWidth; policy(drawn.policy); } });
  Old.charts = { ...parts, drawn, el, room, actionColour, figure, svgOf, save, frontierLine, redraw: (name) => drawn[name] && parts[name](drawn[name]) };
}
