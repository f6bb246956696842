// One episode, step by step: what is true, what has arrived, what is under way, what is believed, what each action is worth.
"use strict";
{
  const $ = (id) => document.getElementById(id);
  const { el, room, actionColour, figure } = Old.charts;
  const { view } = Old.choices;
  const PACE = 900; // milliseconds of a step
  let part = null, timer = 0;

  const name = (s) => String(Old.choices.plant().states[s]);
  const action = (a) => Old.choices.plant().actions[a];
  const short = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

  function show(found) {
    part = found;
    if (view.step >= part.steps.length) view.step = part.steps.length - 1;
    $("step").max = part.steps.length - 1;
    draw();
  }

  function draw() {
    if (!part) return;
    const now = part.steps[view.step];
    $("step").value = view.step;
    $("step").style.setProperty("--at", `${(100 * view.step) / Math.max(part.steps.length - 1, 1)}%`);
    $("step").setAttribute("aria-valuetext", `time ${now.h} of ${part.steps.length - 1}`);
    $("step-value").textContent = `time ${now.h} of ${part.steps.length - 1}`;
    $("back").disabled = view.step === 0;
    $("forward").disabled = view.step === part.steps.length - 1;
    $("told").textContent = told(now);
    timeline(now);
    belief(now);
    worth(now);
    const where = part.began === null ? "" : ` It is played on the recording, from ${figure(part.began, 4)} s on.`;
    $("episode").querySelector("figcaption").textContent =
      `Orange: what is true at each step. Blue: when it is known; a line leaves when an observation is sent and ends when it arrives, × is lost, dashed is still under way. Seed ${part.seed}: the optimum earns ${figure(part.return, 4)}.${where}`;
  }

  function underWay(h) {
    return part.states.map((s, i) => ({ step: i - part.warmup, state: s, arrives: part.arrivals[i] })).filter((o) => o.step <= h && o.arrives > h);
  }

  // the moment in sentences: also what a screen reader says
  function told(now) {
    const best = now.action, other = now.others[view.beside];
    const seen = now.seen === null ? "Nothing has arrived yet" : `The newest that arrived is state ${name(now.seen.state)} of step ${now.seen.step}, ${now.h - now.seen.step === 0 ? "just now" : now.h - now.seen.step === 1 ? "one step old" : `${now.h - now.seen.step} steps old`}`;
    const flying = underWay(now.h).length;
    const queue = now.queue.length ? `; done since: ${now.queue.map(action).join(", ")}` : "";
    const more = flying === 0 ? "nothing is under way" : flying === 1 ? "one observation is under way" : `${flying} observations are under way`;
    const beside = other === null ? `${Old.choices.BESIDE[view.beside]} cannot be asked here` : other === best ? `${Old.choices.BESIDE[view.beside]} would do the same` : `${Old.choices.BESIDE[view.beside]} would do ${action(other)}`;
    return `The process is in state ${name(now.state)}. ${seen}${queue}; ${more}. The optimum does ${action(best)}, ${beside}. Reward ${figure(now.reward, 4)}.`;
  }

  function timeline(now) {
    const w = part.warmup, n = part.steps.length + w, width = room($("episode").querySelector(".timeline"), Math.max(560, 34 * n), 1600), left = 76, right = 8, height = 190;
    const gap = (width - left - right) / Math.max(n, 1), x = (i) => left + (i + w + 0.5) * gap, truth = 34, known = 112, done = 160;
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Time line of the episode up to time ${now.h}` });
    const size = Math.min(15, gap * 0.36), font = Math.min(12, gap * 0.42);
    for (const [y, text] of [[truth, "true state"], [known, "arrived"], [done, "action"]]) svg.append(el("text", { x: 6, y: y + 4, "font-size": 12.5, class: "soft" }, text));
    svg.append(el("rect", { x: x(now.h) - gap / 2, y: 8, width: gap, height: height - 26, rx: 6, fill: "var(--head)" }));
    for (const y of [truth, known]) svg.append(el("line", { x1: left, y1: y, x2: width - right, y2: y, stroke: "var(--line)", "stroke-width": 1 }));
    for (let i = -w; i < part.steps.length; i += 1) {
      const s = part.states[i + w], arrives = part.arrivals[i + w], past = i <= now.h;
      if (past && arrives >= 0) {
        const end = Math.min(arrives, now.h), share = arrives === i ? 1 : (end - i) / (arrives - i), here = arrives <= now.h;
        if (share > 0) svg.append(el("line", { x1: x(i), y1: truth + size, x2: x(i) + share * (x(arrives) - x(i)), y2: truth + size + share * (known - truth - 2 * size), stroke: here ? "var(--known)" : "var(--far)", "stroke-width": here ? 1.8 : 1.6, "stroke-dasharray": here ? "none" : "4 4" }));
        if (!here && share === 0) svg.append(el("circle", { cx: x(i), cy: truth + size + 6, r: 2.4, fill: "var(--far)" }));
        if (here) dot(svg, x(arrives), known, size, name(s), font, "var(--known)", arrives === now.h, `state ${name(s)} of step ${i} arrived at time ${arrives}`);
      } else if (past) svg.append(el("text", { x: x(i), y: truth + size + 20, "text-anchor": "middle", "font-size": 15, class: "soft" }, "×"));
      if (past) dot(svg, x(i), truth, size, name(s), font, "var(--truth)", i === now.h, `step ${i}: state ${name(s)}`);
      else svg.append(el("circle", { cx: x(i), cy: truth, r: 2, fill: "var(--line)" }));
      if (i >= 0 && past) {
        const a = part.steps[i].action;
        const box = el("g");
        box.append(el("title", {}, `time ${i}: ${action(a)}`));
        box.append(el("rect", { x: x(i) - gap * 0.44, y: done - 11, width: gap * 0.88, height: 22, rx: 5, fill: actionColour(a), "fill-opacity": i === now.h ? 0.95 : 0.22 }));
        const text = el("text", { x: x(i), y: done + 4.2, "text-anchor": "middle", "font-size": Math.min(12, gap * 0.3) }, short(action(a), Math.floor(gap / 7)));
        if (i === now.h) text.setAttribute("style", "fill:#fff");
        box.append(text);
        svg.append(box);
      }
    }
    const every = Math.ceil(n / 24);
    for (let i = -w; i < part.steps.length; i += every) svg.append(el("text", { x: x(i), y: height - 4, "text-anchor": "middle", "font-size": 11.5, class: "soft" }, String(i)));
    const box = $("episode").querySelector(".timeline");
    box.replaceChildren(svg);
    box.scrollLeft = x(now.h) - box.clientWidth / 2; // on a narrow screen the present stays in view
  }

  function dot(svg, x, y, r, text, font, fill, strong, title) {
    const group = el("g");
    group.append(el("title", {}, title));
    group.append(el("circle", { cx: x, cy: y, r, fill: "var(--card)", stroke: fill, "stroke-width": strong ? 3 : 1.6 }));
    if (font > 5) group.append(el("text", { x, y: y + font * 0.35, "text-anchor": "middle", "font-size": font, "font-weight": strong ? 700 : 400 }, short(text, 4)));
    svg.append(group);
  }

  function belief(now) {
    const all = now.belief, most = 40;
    let shown = all.map((p, s) => [s, p]);
    if (all.length > most) shown = shown.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, most - 1).concat(shown.some(([s]) => s === now.state) ? [] : [[now.state, all[now.state]]]).sort((a, b) => a[0] - b[0]);
    const width = room($("belief"), 260, 900), height = 190, left = 8, base = 150, gap = (width - 2 * left) / shown.length, top = Math.max(...all, 0.25);
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Belief: ${shown.filter(([, p]) => p >= 0.005).map(([s, p]) => `state ${name(s)} ${Math.round(100 * p)} %`).join(", ")}. True state ${name(now.state)}.` });
    svg.append(el("line", { x1: left, y1: base, x2: width - left, y2: base, stroke: "var(--line)" }));
    const every = Math.ceil((shown.length * 19) / width);
    shown.forEach(([s, p], i) => {
      const x = left + i * gap, h = (p / top) * 128;
      const bar = el("rect", { x: x + gap * 0.12, y: base - h, width: gap * 0.76, height: Math.max(h, p > 0 ? 1 : 0), rx: 2, fill: "var(--known)", "fill-opacity": s === now.state ? 1 : 0.55 });
      bar.append(el("title", {}, `state ${name(s)}: ${figure(100 * p, 3)} %`));
      svg.append(bar);
      if (p / top > 0.1 && gap > 11) svg.append(el("text", { x: x + gap / 2, y: base - h - 4, "text-anchor": "middle", "font-size": 11 }, `${Math.round(100 * p)}`));
      if (s === now.state || (i % every === 0 && (every === 1 || Math.abs(i - shown.findIndex(([z]) => z === now.state)) >= every))) svg.append(el("text", { x: x + gap / 2, y: base + 14, "text-anchor": "middle", "font-size": 11, class: s === now.state ? "" : "soft", "font-weight": s === now.state ? 700 : 400 }, short(name(s), 6)));
      if (s === now.state) svg.append(el("path", { d: `M ${x + gap / 2} ${base + 19} l 5 9 h -10 z`, fill: "var(--truth)" }));
    });
    svg.append(el("text", { x: left, y: height - 3, "font-size": 11.5, class: "soft" }, "probability [%] of each state; ▲ the true one"));
    $("belief").replaceChildren(svg);
  }

  function worth(now) {
    const known = now.q.filter((v) => v !== null), width = room($("q"), 260, 900), rowH = 30, height = Math.max(now.q.length * rowH + 24, 60), left = 76, marksAt = width < 420 ? 0 : 172;
    const best = Math.max(...known), low = Math.min(...known), span = best - low || 1;
    const other = now.others[view.beside];
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Worth of each action: ${now.q.map((v, a) => `${action(a)} ${figure(v)}`).join(", ")}` });
    now.q.forEach((v, a) => {
      const y = 6 + a * rowH, share = v === null ? 0 : 0.1 + 0.9 * ((v - low) / span), space = width - left - 62 - (marksAt || 22);
      svg.append(el("text", { x: left - 8, y: y + 16, "text-anchor": "end", "font-size": 12.5, "font-weight": a === now.action ? 700 : 400 }, short(action(a), 12)));
      svg.append(el("rect", { x: left, y: y + 2, width: Math.max(share * space, 1), height: rowH - 11, rx: 3, fill: actionColour(a), "fill-opacity": a === now.action ? 1 : 0.4 }));
      svg.append(el("text", { x: left + share * space + 8, y: y + 16, "font-size": 12 }, v === null ? "not known" : figure(v, 5)));
      const marks = [a === now.action ? "optimum" : "", a === other ? Old.choices.BESIDE[view.beside] : ""].filter(Boolean).join(" · ");
      if (marks) svg.append(el("text", { x: width - 2, y: y + 16, "text-anchor": "end", "font-size": 11.5, class: "soft" }, marksAt ? `◂ ${marks}` : `${a === now.action ? "●" : ""}${a === other ? "○" : ""}`));
    });
    svg.append(el("text", { x: marksAt ? left : 2, y: height - 3, "font-size": 11.5, class: "soft" }, known.length ? (marksAt ? "expected reward of the steps left" : `● optimum, ○ ${Old.choices.BESIDE[view.beside]}`) : "the plan's link cannot lead here"));
    $("q").replaceChildren(svg);
  }

  // -- playing
  function go(step) {
    if (!part) return;
    view.step = Math.max(0, Math.min(step, part.steps.length - 1));
    draw();
    Old.choices.write();
  }

  function playing(on) {
    clearInterval(timer);
    timer = 0;
    if (on) {
      if (part && view.step === part.steps.length - 1) go(0);
      timer = setInterval(() => { if (!part || view.step >= part.steps.length - 1) playing(false); else go(view.step + 1); }, PACE);
    }
    $("play").textContent = on ? "❚❚" : "▶";
    $("play").setAttribute("aria-label", on ? "Pause" : "Play");
    $("play").setAttribute("aria-pressed", String(on));
  }

  $("back").addEventListener("click", () => { playing(false); go(view.step - 1); });
  $("forward").addEventListener("click", () => { playing(false); go(view.step + 1); });
  $("play").addEventListener("click", () => playing(!timer));
  $("step").addEventListener("input", () => { playing(false); go(Number($("step").value)); });
  $("episode").addEventListener("keydown", (event) => {
    if (/^(INPUT|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowRight") { playing(false); go(view.step + 1); }
    else if (event.key === "ArrowLeft") { playing(false); go(view.step - 1); }
    else if (event.key === " " && event.target.tagName !== "BUTTON") playing(!timer);
    else return;
    event.preventDefault();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });

  Old.episode = { show, draw, go, playing, get part() { return part; } };
}
