// What is chosen: the process, the link, the start, every slider, and what is looked at; in the controls and in the address.
"use strict";
globalThis.Old = globalThis.Old ?? {};
{
  const menu = JSON.parse(document.getElementById("menu").textContent);
  const fields = new Map(menu.fields.map((f) => [f.name, f]));
  const $ = (id) => document.getElementById(id);
  const VIEW = { axis: "delay", target: 80, seed: 1, step: 0, beside: "most_likely" };
  const BESIDE = { most_likely: "most likely state", qmdp: "QMDP", memoryless: "newest seen state" };
  const position = { ...menu.defaults };
  const view = { ...VIEW };
  let accepted = { ...position };
  const rows = new Map();
  const heard = { position: () => {}, view: () => {} };

  const whole = (f) => Number.isInteger(f.step) && f.name !== "loss";
  const most = (f) => (f.name === "horizon" ? Math.min(f.most, menu.plants[position.plant].most_horizon) : f.most);

  // what is wrong with a value, in a sentence; null if nothing is
  function wrong(f, value, top = most(f)) {
    const unit = f.unit ? ` ${f.unit}` : "";
    const allowed = `allowed is ${whole(f) ? "a whole number" : "a number"} from ${f.least} to ${top}${unit}`;
    if (value === "" || value === null || !Number.isFinite(Number(value))) return `${f.label}: ${value === "" ? "nothing is written" : `“${value}” is not a number`}; ${allowed}.`;
    const x = Number(value);
    if (x < f.least || x > top || (whole(f) && !Number.isInteger(x))) return `${f.label} is ${x}; ${allowed}.`;
    return null;
  }

  function option(value, text) {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = text;
    return made;
  }

  function fieldRow(f) {
    const row = document.createElement("div");
    row.className = "field";
    row.innerHTML = `<label for="${f.name}"></label><input type="number" id="${f.name}" step="any" inputmode="decimal"><span class="unit"></span>
      <input type="range" id="${f.name}-range"><p class="wrong" id="${f.name}-wrong" hidden></p>`;
    const [number, range] = row.querySelectorAll("input");
    row.querySelector("label").textContent = f.label;
    row.title = f.help;
    row.querySelector(".unit").textContent = f.unit;
    number.setAttribute("aria-describedby", `${f.name}-wrong`);
    range.setAttribute("aria-label", `${f.label}${f.unit ? `, ${f.unit}` : ""}. ${f.help}`);
    Object.assign(range, { min: f.least, max: f.most, step: f.step });
    range.addEventListener("input", () => move(f, Number(range.value)));
    number.addEventListener("change", () => {
      const why = wrong(f, number.value.trim());
      complain(f.name, why);
      if (why === null) move(f, Number(number.value));
    });
    rows.set(f.name, { row, number, range });
    return row;
  }

  function complain(name, why) {
    const { row, number } = rows.get(name);
    const place = row.querySelector(".wrong");
    place.textContent = why ?? "";
    place.hidden = why === null;
    number.setAttribute("aria-invalid", String(why !== null));
  }

  function move(f, value) {
    position[f.name] = value;
    if (f.name === "delay" && position.jitter > value) position.jitter = value; // around a mean: no negative delays
    if (f.name === "jitter" && value > position.delay) position.delay = value;
    if (f.link || f.name === "horizon" || f.name === "discount") {
      if (f.name !== "period_ms" && $("axis").querySelector(`option[value="${f.name}"]`)) view.axis = f.name;
    }
    changed();
  }

  function changed() {
    show();
    heard.position();
  }

  function show() {
    $("plant").value = position.plant;
    $("link").value = position.link;
    for (const input of $("start").querySelectorAll("input")) input.checked = input.value === position.start;
    const sliders = position.link === "sliders";
    for (const [name, { row, number, range }] of rows) {
      const f = fields.get(name);
      if (f.name === "horizon") range.max = most(f);
      range.value = position[name];
      range.style.setProperty("--at", `${(100 * (position[name] - f.least)) / (range.max - f.least || 1)}%`);
      range.setAttribute("aria-valuetext", `${position[name]} ${f.unit}`);
      if (document.activeElement !== number || number.getAttribute("aria-invalid") !== "true") number.value = position[name];
      number.disabled = range.disabled = Boolean(f.fixed) || (f.link && !sliders);
      row.hidden = name === "period_ms" && position.link !== "recording";
      complain(name, null);
    }
    $("axis").value = view.axis;
    $("target").value = view.target;
    $("target").style.setProperty("--at", `${(100 * (view.target - 30)) / 70}%`);
    $("target-value").textContent = `${view.target} % of full information`;
    $("seed").value = view.seed;
    $("beside").value = view.beside;
  }

  // -- the address
  function address(anchor = "") {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(position)) if (value !== menu.defaults[key]) query.set(key, value);
    for (const [key, value] of Object.entries(view)) if (value !== VIEW[key]) query.set(key, value);
    const text = query.toString();
    return `${location.pathname}${text ? `?${text}` : ""}${anchor ? `#${anchor}` : location.hash}`;
  }

  const write = () => history.replaceState(null, "", address());

  // the address as choices; returns a sentence for each part that is not allowed, which changes nothing
  function read() {
    const complaints = [];
    const query = new URLSearchParams(location.search);
    const one = (key, allowed) => {
      const value = query.get(key);
      if (value === null) return;
      if (allowed.includes(value)) position[key] = value;
      else complaints.push(`${key} is “${value.slice(0, 60)}”; allowed is one of ${allowed.join(", ")}.`);
    };
    one("plant", Object.keys(menu.plants));
    if (position.plant !== menu.defaults.plant) position.horizon = menu.plants[position.plant].horizon;
    one("link", Object.keys(menu.links));
    one("start", [...menu.starts]);
    for (const f of menu.fields) {
      const value = query.get(f.name);
      if (value === null) continue;
      const why = f.fixed ? `${f.label} is fixed on this page.` : wrong(f, value);
      if (why === null) position[f.name] = Number(value);
      else complaints.push(why);
    }
    if (position.jitter > position.delay) {
      complaints.push(`Jitter is ${position.jitter} around a mean delay of ${position.delay}; allowed is 0 to ${position.delay} steps.`);
      position.jitter = position.delay;
    }
    const seed = { label: "Seed", name: "seed", unit: "", least: 0, most: 2147483647, step: 1 };
    const target = { label: "Target", name: "target", unit: "%", least: 30, most: 100, step: 1 };
    const step = { label: "Time", name: "step", unit: "", least: 0, most: 1000, step: 1 };
    for (const f of [seed, target, step]) {
      const value = query.get(f.name);
      if (value === null) continue;
      const why = wrong(f, value, f.most);
      if (why === null) view[f.name] = Number(value);
      else complaints.push(why);
    }
    for (const [key, allowed] of [["axis", [...$("axis").options].map((o) => o.value)], ["beside", Object.keys(BESIDE)]]) {
      const value = query.get(key);
      if (value === null) continue;
      if (allowed.includes(value)) view[key] = value;
      else complaints.push(`${key} is “${value.slice(0, 60)}”; allowed is one of ${allowed.join(", ")}.`);
    }
    for (const key of query.keys())
      if (!(key in position) && !(key in view)) complaints.push(`“${key.slice(0, 40)}” in the address means nothing here.`);
    return complaints;
  }

  function build() {
    for (const name of Object.keys(menu.plants)) $("plant").append(option(name, name));
    for (const [name, text] of Object.entries(menu.links)) $("link").append(option(name, text));
    for (const start of menu.starts) {
      const label = document.createElement("label");
      label.innerHTML = `<input type="radio" name="start" value="${start}"><span></span>`;
      label.title = start === "cold" ? "Nothing is known before the first observation arrives." : "The process has run before, and the agent knows that past.";
      label.querySelector("span").textContent = start;
      label.querySelector("input").addEventListener("change", () => { position.start = start; changed(); });
      $("start").append(label);
    }
    for (const f of menu.fields) $(f.link || f.name === "period_ms" ? "link-fields" : "process-fields").append(fieldRow(f));
    for (const f of menu.fields) if (f.name !== "period_ms" && !f.fixed) $("axis").append(option(f.name, f.label.toLowerCase()));
    for (const [name, text] of Object.entries(BESIDE)) $("beside").append(option(name, text));
    $("plant").disabled = Object.keys(menu.plants).length === 1;
    $("link").disabled = Object.keys(menu.links).length === 1;
    for (const input of $("start").querySelectorAll("input")) input.disabled = menu.starts.length === 1;
    $("plant").addEventListener("change", () => {
      position.plant = $("plant").value;
      position.horizon = menu.plants[position.plant].horizon;
      changed();
    });
    $("link").addEventListener("change", () => { position.link = $("link").value; changed(); });
    $("reset").addEventListener("click", () => { Object.assign(position, menu.defaults); Object.assign(view, VIEW); changed(); });
    $("axis").addEventListener("change", () => { view.axis = $("axis").value; heard.view("axis"); });
    $("target").addEventListener("input", () => { view.target = Number($("target").value); show(); heard.view("target"); });
    $("beside").addEventListener("change", () => { view.beside = $("beside").value; heard.view("beside"); });
  }

  build();
  const complaints = read();
  show();

  Old.menu = menu;
  Old.fields = fields;
  Old.choices = {
    position, view, heard, complaints, show, write, address, wrong, BESIDE,
    accept(of) { accepted = { ...of }; },
    // what was refused changes nothing
    revert() { Object.assign(position, accepted); show(); },
    get accepted() { return accepted; },
    plant: () => menu.plants[position.plant],
  };
}
