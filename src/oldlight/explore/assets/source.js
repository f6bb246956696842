// Where answers come from: the server of this page, or the grid that was exported with it. Only the last question is answered.
"use strict";
{
  const exported = document.getElementById("grid");
  const WAIT = 120; // milliseconds that a question waits for the answer to the one before

  // a page that is served: one WebSocket; a question is sent when the one before is answered, or has taken WAIT
  function live(onpart, onstate) {
    let socket, n = 0, waiting = null, sent = 0, answered = true, timer = 0;

    function connect() {
      socket = new WebSocket(new URL("live", location.href.replace(/^http/, "ws").replace(/[?#].*/, "")));
      socket.onopen = () => { onstate("open"); flush(); };
      socket.onmessage = (event) => {
        const part = JSON.parse(event.data);
        if (part.part === "full") { onstate("full", part.text); return; }
        if (part.n !== n) return;
        if (part.part === "optimum" || part.part === "refused" || part.part === "done") { answered = true; if (waiting) flush(); }
        onpart(part);
      };
      socket.onclose = () => onstate("closed");
    }

    function flush() {
      clearTimeout(timer);
      if (!waiting || socket.readyState !== WebSocket.OPEN) return;
      const now = performance.now();
      if (!answered && now - sent < WAIT) { timer = setTimeout(flush, WAIT - (now - sent)); return; }
      n += 1;
      socket.send(JSON.stringify({ n, ...waiting }));
      waiting = null;
      sent = now;
      answered = false;
    }

    connect();
    return {
      live: true,
      ask(question) { waiting = structuredClone(question); flush(); },
      get settled() { return answered && !waiting; },
    };
  }

  // a page without a server: every position of a grid was planned beforehand
  function fromGrid(onpart, onstate) {
    const grid = JSON.parse(exported.textContent);
    const key = (p) => grid.axes.map((name) => p[name]).join("|");
    const at = (p) => grid.positions[key(p)];
    function curve(position, axis) {
      const levels = grid.levels[axis] ?? grid.levels[grid.axes[0]];
      const name = axis in grid.levels ? axis : grid.axes[0];
      const points = levels.map((x) => [x, at({ ...position, [name]: x }).optimum]).map(([x, o]) => ({ x, low: o.lower, high: o.upper, full: o.full }));
      return { part: "curve", axis: name, here: position[name], points, of: levels.length, final: true, note: "", code: grid.curve_code[name] };
    }
    function prices(position) {
      const rows = [];
      for (const name of grid.axes) {
        const levels = grid.levels[name];
        const next = levels[levels.indexOf(position[name]) + 1];
        if (next === undefined) continue;
        const [here, there] = [at(position).optimum, at({ ...position, [name]: next }).optimum];
        rows.push({ name, cost: here.value - there.value, by: next - position[name] });
      }
      return { part: "prices", rows };
    }
    setTimeout(() => onstate("open"));
    return {
      live: false,
      settled: true,
      ask({ position, parts, axis, seed }) {
        const found = at(position);
        if (!found) { onpart({ part: "refused", text: "This position is not on the grid of this page." }); return; }
        for (const part of parts) {
          if (part === "curve") onpart(curve(position, axis));
          else if (part === "prices") onpart(prices(position));
          else if (part === "frontier") onpart(grid.frontier);
          else if (part === "need") onpart({ part: "need", target: null, points: [], final: true });
          else if (part === "episode") onpart(found.episodes[seed % found.episodes.length]);
          else onpart(found[part]);
        }
        onpart({ part: "done" });
      },
    };
  }

  Old.source = exported ? fromGrid : live;
  Old.exported = Boolean(exported);
}
