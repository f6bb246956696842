// The page: what is chosen goes to the source, what comes back goes to the pictures.
"use strict";
{
  const $ = (id) => document.getElementById(id);
  const { choices, charts, episode } = Old;
  const { position, view } = choices;
  const ORDER = ["optimum", "prices", "curve", "episode", "policy", "frontier", "need"];
  const code = {};
  const figures = { price: "curve", frontier: "frontier", policy: "policy", ages: "policy", episode: "episode" };
  let missing = new Set(), asked = {}, began = 0;

  function status(text, kind = "") {
    $("status").className = kind;
    $("status").querySelector(".text").textContent = text;
  }

  function trouble(text) {
    $("trouble").hidden = !text;
    $("trouble").querySelector("p").textContent = text ?? "";
  }
  $("trouble").querySelector("button").addEventListener("click", () => trouble(null));

  function ask(parts) {
    for (const part of parts) missing.add(part);
    const wanted = ORDER.filter((part) => missing.has(part));
    asked = { ...position };
    began = performance.now();
    source.ask({ position: { ...position }, parts: wanted, axis: view.axis, seed: view.seed, target: view.target });
  }

  const mapKey = () => JSON.stringify({ ...position, delay: 0, loss: 0 });
  const needKey = () => `${mapKey()}${view.target}`;
  let mapOf = null, needOf = null;

  function onpart(part) {
    if (part.part === "refused" || part.part === "died") {
      trouble(part.text);
      if (part.part === "refused") {
        choices.revert();
        choices.write();
        missing.clear();
      }
      status("ready");
      document.documentElement.dataset.settled = String(performance.now());
      return;
    }
    if (part.part === "progress") {
      const share = part.total ? ` ${part.done} of ${part.total}` : "";
      status(`${part.what}${share} …`, "busy");
      return;
    }
    if (part.part === "done") {
      document.body.classList.remove("stale");
      const found = charts.drawn.optimum;
      status(found ? `${found.states.toLocaleString("en")} information states in ${charts.figure(1000 * found.seconds, 3)} ms` : "ready");
      document.documentElement.dataset.settled = String(performance.now());
      document.documentElement.dataset.drawn = "1";
      return;
    }
    if (part.code) code[part.part] = part.code;
    if (part.part === "optimum") {
      if (!document.hidden) document.documentElement.dataset.latency = String(performance.now() - began);
      choices.accept(asked);
      charts.optimum(part);
      document.body.classList.remove("stale");
      document.documentElement.dataset.answered = String(Number(document.documentElement.dataset.answered ?? 0) + 1);
      if (!part.final) { status("closing the bounds …", "busy"); return; }
      charts.redraw("frontier");
    } else if (part.part === "episode") episode.show(part);
    else charts[part.part](part);
    if (part.part === "frontier" && part.final) mapOf = mapKey();
    if (part.part === "need" && part.final) needOf = needKey();
    if (part.final !== false) missing.delete(part.part);
  }

  function onstate(state, text) {
    if (state === "open") {
      status("planning …", "busy");
      ask(ORDER);
    } else {
      status(text ?? "The server has ended. Start oldlight explore again and use its new address.", "gone");
      if (text) trouble(text);
    }
  }

  choices.heard.position = () => {
    trouble(null);
    choices.write();
    document.body.classList.add("stale");
    missing = new Set(ORDER);
    if (mapOf === mapKey()) missing.delete("frontier"); // the map does not change when its own two sliders move
    else charts.drawn.need = null;
    if (needOf === needKey()) missing.delete("need");
    ask([]);
  };
  choices.heard.view = (what) => {
    choices.write();
    if (what === "axis") ask(["curve"]);
    if (what === "target") {
      charts.redraw("frontier");
      ask(["need"]);
    }
    if (what === "beside") episode.draw();
  };

  // -- a seed
  const seedField = { name: "seed", label: "Seed", unit: "", least: 0, most: 2147483647, step: 1 };
  $("seed").addEventListener("change", () => {
    const why = choices.wrong(seedField, $("seed").value.trim(), seedField.most);
    trouble(why);
    if (why !== null) { $("seed").value = view.seed; return; }
    view.seed = Number($("seed").value);
    reseeded();
  });
  $("new-seed").addEventListener("click", () => { view.seed = Old.exported ? view.seed + 1 : 1 + Math.floor(Math.random() * 99999); reseeded(); });
  function reseeded() {
    view.step = 0;
    episode.playing(false);
    choices.show();
    choices.write();
    ask(["episode"]);
  }

  // -- tools of each picture: its address, its SVG, its Python lines
  function tool(text, title, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    button.title = title;
    button.addEventListener("click", act);
    return button;
  }
  for (const [id, part] of Object.entries(figures)) {
    const heading = $(id).querySelector("h2").textContent;
    const address = tool("Address", "Put the address of this view into the address line and the clipboard", async () => {
      history.replaceState(null, "", choices.address(id));
      try { await navigator.clipboard.writeText(location.href); status("The address is copied."); } catch { status("The address is in the address line."); }
    });
    const svg = tool("SVG", "Save this picture as an SVG file", async () => charts.save(await charts.svgOf(id), id));
    const python = tool("Python", "The Python lines that make the same numbers", () => showCode(part));
    for (const button of [address, svg, python]) {
      button.setAttribute("aria-label", `${button.textContent}: ${heading}`);
      $(id).querySelector(".tools").append(button);
    }
  }
  document.querySelector("[data-code=optimum]").addEventListener("click", () => showCode("optimum"));

  function showCode(part) {
    const more = part === "frontier" && code.need ? `\n\n# the frontier, certified\n${code.need.slice(code.need.indexOf("for d in"))}` : "";
    $("code").querySelector("code").textContent = code[part] ? code[part] + more : "# nothing has been planned yet";
    $("copied").textContent = "";
    $("code").showModal();
  }
  $("copy").addEventListener("click", async () => {
    const text = $("code").querySelector("code").textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const range = document.createRange();
      range.selectNodeContents($("code").querySelector("code"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    $("copied").textContent = "Copied.";
  });
  $("code").addEventListener("click", (event) => { if (event.target === $("code")) $("code").close(); });

  const narrow = window.matchMedia("(max-width: 61.99rem)");
  const fold = () => { document.querySelector("#choices details").open = true; };
  narrow.addEventListener("change", fold);

  if (choices.complaints.length) trouble(choices.complaints.join(" "));
  choices.write();
  const source = Old.source(onpart, onstate);
  Old.page = { code, get settled() { return missing.size === 0; } };
}
