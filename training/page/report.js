"use strict";
// Lists the games and shows them as boards. Knows no rules: what each ply removes is in the data.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("list");
  const viewer = document.getElementById("viewer");
  const cells = data.cells.length;
  const swap = cells;
  const komi = cells + 1;
  const page = 50; // games added to the list at a time
  const svgName = "http://www.w3.org/2000/svg";
  const colours = { b: "black", w: "white" };
  const filter = { player: -1, opponent: -1, result: "", reason: -1 };
  const byNumber = new Map(data.games.map((game) => [game.n, game]));
  let shown = page;
  let open = null; // {game, ply}
  let parts = null; // the viewer's elements
  let labelled = true;

  function element(name, attributes = {}, ...inside) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null) made.setAttribute(key, value);
    }
    made.append(...inside);
    return made;
  }

  function drawn(name, attributes, ...inside) {
    const made = document.createElementNS(svgName, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  }

  const named = (player) => element("bdi", {}, data.players[player]);

  // ---- games as data

  function code(text, i) {
    return ((text.charCodeAt(i) | 32) - 97) * 26 + ((text.charCodeAt(i + 1) | 32) - 97);
  }

  const length = (game) => game.m.length / 2;
  const action = (game, ply) => code(game.m, 2 * ply - 2); // plies count from 1
  const colour = (game, ply) => (game.m[2 * ply - 2] < "a" ? "w" : "b");

  // The board after so many plies, and what the last of them did.
  function replay(game, ply) {
    const stones = game.s ? Array.from(game.s) : new Array(cells).fill(".");
    let swapped = Boolean(game.u);
    let removed = [];
    for (let i = 1; i <= ply; i++) {
      const played = action(game, i);
      if (played < cells) stones[played] = colour(game, i);
      if (played === swap) swapped = !swapped;
      removed = [];
      const gone = game.x[i] || "";
      for (let k = 0; k < gone.length; k += 2) {
        const cell = code(gone, k);
        removed.push([cell, stones[cell]]);
        stones[cell] = ".";
      }
    }
    return { stones, swapped, removed };
  }

  // The seat that owns a colour.
  const owner = (what, swapped) => Number((what === "w") !== swapped);

  // ---- the list

  function matches(game) {
    const { player, opponent, result, reason } = filter;
    const seat = game.p.indexOf(player);
    if (player >= 0 && seat < 0) return false;
    if (opponent >= 0 && !game.p.includes(opponent)) return false;
    if (player >= 0 && player === opponent && game.p[0] !== game.p[1]) return false;
    if (reason >= 0 && game.r !== reason) return false;
    if (result === "none") return game.w === null;
    if (result === "0" || result === "1") return game.w === Number(result);
    if (result === "won") return game.w !== null && game.p[game.w] === player;
    if (result === "lost") return game.w !== null && game.p[1 - game.w] === player;
    return true;
  }

  function select(label, options, value, change) {
    const box = element("select", { onchange: (event) => change(event.target.value) });
    for (const [key, text] of options) box.append(element("option", { value: key }, text));
    box.value = String(value);
    return element("label", {}, label, box);
  }

  function drawList() {
    const names = data.players.map((name, i) => [i, name]);
    const set = (key, number) => (value) => {
      filter[key] = number ? Number(value) : value;
      if (filter.player < 0 && (filter.result === "won" || filter.result === "lost")) filter.result = "";
      shown = page;
      drawList();
      list.querySelectorAll("select")[["player", "opponent", "result", "reason"].indexOf(key)].focus();
    };
    const results = [["", "any"], ["0", "seat 0 won"], ["1", "seat 1 won"], ["none", "no result"]];
    if (filter.player >= 0) results.splice(1, 0, ["won", "won by the player"], ["lost", "lost by the player"]);
    const found = data.games.filter(matches);
    const rows = element("ol", { class: "games" });
    for (const game of found.slice(0, shown)) rows.append(element("li", {}, row(game)));
    list.replaceChildren(
      element("div", { class: "filters" },
        select("player", [[-1, "any"], ...names], filter.player, set("player", true)),
        select("opponent", [[-1, "any"], ...names], filter.opponent, set("opponent", true)),
        select("result", results, filter.result, set("result", false)),
        select("end", [[-1, "any"], ...data.reasons.map((r, i) => [i, r])], filter.reason, set("reason", true))),
      element("p", { class: "count", role: "status" }, `${found.length} ${found.length === 1 ? "game" : "games"}`),
      rows);
    if (found.length > shown) {
      const more = `show ${Math.min(page, found.length - shown)} more`;
      const next = () => {
        shown += page;
        drawList();
        list.querySelectorAll(".games button")[shown - page].focus();
      };
      list.append(element("button", { class: "more", type: "button", onclick: next }, more));
    }
  }

  function row(game) {
    const seat = (which) => {
      const won = game.w === which;
      const text = element("span", { class: (which ? "second" : "first") + (won ? " won" : "") }, named(game.p[which]));
      if (won) text.append(" won");
      return text;
    };
    const current = open && open.game === game ? "true" : null;
    const pair = game.k === undefined ? "" : `pair ${game.k}`;
    return element("button", { type: "button", "aria-current": current, "data-game": game.n, onclick: () => show(game, game.o, true) },
      element("span", { class: "dim" }, `#${game.n}`), seat(0), seat(1),
      element("span", { class: "dim reason" }, game.r === null ? "no result" : data.reasons[game.r]),
      element("span", { class: "dim plies" }, `${length(game)} plies`),
      element("span", { class: "dim pair" }, pair));
  }

  // ---- the viewer

  function makeBoard() {
    const [width, height, cell] = data.size;
    const side = cell / Math.sqrt(3);
    const corners = [[0, -side], [cell / 2, -side / 2], [cell / 2, side / 2], [0, side], [-cell / 2, side / 2], [-cell / 2, -side / 2]];
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    data.cells.forEach(([x, y], i) => {
      const shape = "M" + corners.map(([dx, dy]) => `${(x + dx).toFixed(1)} ${(y + dy).toFixed(1)}`).join("L") + "Z";
      svg.append(drawn("path", { d: shape }, drawn("title", {}, data.moves[i])));
    });
    for (const start of data.rows) {
      const [x, y] = data.cells[start];
      svg.append(drawn("text", { x: x - cell / 2 - 12, y: y + 5, class: "edge" }, data.moves[start][0]));
    }
    const ends = [[data.rows[0], data.rows[1], -1], [data.rows[data.rows.length - 1], cells, 1]];
    for (const [from, to, down] of ends) {
      for (let i = from; i < to; i++) {
        const [x, y] = data.cells[i];
        svg.append(drawn("text", { x: x + 0.45 * cell, y: y + down * (side + 9) + 5, class: "edge" }, data.moves[i].slice(1)));
      }
    }
    const stones = drawn("g", { "pointer-events": "none" });
    svg.append(stones);
    return { svg, stones };
  }

  function makeViewer() {
    const { svg, stones } = makeBoard();
    const button = (shape, label, go) => element("button", { type: "button", "aria-label": label, title: label, onclick: () => goTo(go()) },
      drawn("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, drawn("path", { d: shape })));
    parts = {
      title: element("h3", {}), svg, stones, seats: element("ul", { class: "seats" }),
      status: element("p", { class: "status", "aria-live": "polite" }), moves: element("ol", { class: "moves", "aria-label": "moves" }),
      slider: element("input", { type: "range", min: 0, "aria-label": "ply", oninput: (event) => goTo(Number(event.target.value)) }),
      first: button("M2 2h2v12h-2zM14 2v12L5 8z", "first position (Home)", () => 0), back: button("M12 2v12L3 8z", "previous ply (left arrow)", () => open.ply - 1),
      next: button("M4 2v12l9-6z", "next ply (right arrow)", () => open.ply + 1), last: button("M12 2h2v12h-2zM2 2v12l9-6z", "last position (End)", () => length(open.game)),
      link: element("a", {}, "link to this position"),
    };
    const labels = element("input", { type: "checkbox", onchange: (event) => { labelled = event.target.checked; draw(); } });
    labels.checked = labelled;
    viewer.replaceChildren(
      element("div", { class: "head" }, parts.title, element("button", { type: "button", onclick: close, title: "close (Escape)" }, "close")),
      element("div", {}, element("div", { class: "board" }, svg),
        element("div", { class: "controls" }, parts.first, parts.back, parts.slider, parts.next, parts.last),
        element("div", { class: "options" }, element("label", {}, labels, " cell labels"), parts.link)),
      element("div", {}, parts.seats, parts.status, parts.moves));
  }

  function show(game, ply, scroll) {
    if (!parts) makeViewer();
    const fresh = !open || open.game !== game;
    open = { game, ply: Math.max(0, Math.min(length(game), ply)) };
    viewer.hidden = false;
    if (fresh) {
      parts.title.replaceChildren(`Game ${game.n}: `, named(game.p[0]), " against ", named(game.p[1]), result(game));
      parts.slider.max = length(game);
      parts.moves.replaceChildren(...Array.from({ length: length(game) }, (_, i) => moveItem(game, i + 1)));
      for (const other of list.querySelectorAll(".games [aria-current]")) other.removeAttribute("aria-current");
      const entry = list.querySelector(`[data-game="${game.n}"]`);
      if (entry) entry.setAttribute("aria-current", "true");
    }
    draw();
    if (scroll) {
      viewer.scrollIntoView({ block: "start" });
      parts.next.focus({ preventScroll: true });
    }
  }

  function result(game) {
    const end = element("small", {});
    if (game.w === null) end.append("; no result");
    else end.append("; ", named(game.p[game.w]), ` (seat ${game.w}) won, ${data.reasons[game.r]}`);
    return end;
  }

  function moveItem(game, ply) {
    const disc = element("span", { class: `disc ${colour(game, ply)}`, role: "img", "aria-label": colours[colour(game, ply)] });
    return element("li", {}, element("button", { type: "button", class: ply <= game.o ? "opening" : null, onclick: () => goTo(ply) },
      disc, data.moves[action(game, ply)]));
  }

  function close() {
    viewer.hidden = true;
    const entry = list.querySelector(`[data-game="${open.game.n}"]`);
    open = null;
    remember("#games");
    if (entry) {
      entry.removeAttribute("aria-current");
      entry.focus();
    }
  }

  function goTo(ply) {
    show(open.game, ply, false);
  }

  function draw() {
    const { game, ply } = open;
    const { stones, swapped, removed } = replay(game, ply);
    const { svg } = parts;
    drawStones(stones, removed, ply ? action(game, ply) : -1);
    drawSeats(game, ply, swapped);
    const status = statusText(game, ply, removed);
    parts.status.textContent = status;
    const where = (what) => data.moves.filter((_, i) => stones[i] === what).join(", ") || "none";
    svg.setAttribute("aria-label", `${status} Black stones: ${where("b")}. White stones: ${where("w")}.`);
    parts.slider.value = ply;
    parts.slider.setAttribute("aria-valuetext", `ply ${ply} of ${length(game)}`);
    parts.first.disabled = parts.back.disabled = ply === 0;
    parts.next.disabled = parts.last.disabled = ply === length(game);
    const old = parts.moves.querySelector("[aria-current]");
    if (old) old.removeAttribute("aria-current");
    if (ply) {
      const button = parts.moves.children[ply - 1].firstChild;
      button.setAttribute("aria-current", "step");
      const [box, at] = [parts.moves.getBoundingClientRect(), button.getBoundingClientRect()];
      if (at.top < box.top || at.bottom > box.bottom) parts.moves.scrollTop += at.top - box.top - box.height / 2;
    } else parts.moves.scrollTop = 0;
    const address = `#game=${game.n}&ply=${ply}`;
    parts.link.href = address;
    remember(address);
  }

  function drawStones(stones, removed, last) {
    const size = data.size[2];
    const inside = [];
    const disc = (i, radius, kind) => drawn("circle", { cx: data.cells[i][0], cy: data.cells[i][1], r: radius * size, class: kind });
    const gone = new Map(removed);
    for (let i = 0; i < cells; i++) {
      const [x, y] = data.cells[i];
      if (stones[i] !== ".") inside.push(disc(i, 0.385, `stone ${stones[i]}`));
      else if (gone.has(i)) {
        inside.push(disc(i, 0.385, `stone gone ${gone.get(i)}`));
        const d = 0.2 * size;
        inside.push(drawn("path", { d: `M${x - d} ${y - d}L${x + d} ${y + d}M${x + d} ${y - d}L${x - d} ${y + d}`, class: "cross-out" }));
      } else if (labelled) inside.push(drawn("text", { x, y: y + 4 }, data.moves[i]));
    }
    if (last >= 0 && last < cells) inside.push(disc(last, gone.has(last) ? 0.45 : 0.3, "last"));
    parts.stones.replaceChildren(...inside);
  }

  // Who owns which colour at this ply: it changes with a swap.
  function drawSeats(game, ply, swapped) {
    const turn = ply < length(game) ? colour(game, ply + 1) : null;
    parts.seats.replaceChildren(...["b", "w"].map((what) => {
      const seat = owner(what, swapped);
      const notes = [`${colours[what]}, seat ${seat}`];
      if (swapped) notes.push("after the swap");
      if (what === turn) notes.push("to play");
      if (turn === null && game.w === seat) notes.push("won");
      return element("li", { class: what === turn ? "turn" : null },
        element("span", { class: `disc ${what}` }),
        element("span", {}, named(game.p[seat]), element("small", {}, notes.join(", "))));
    }));
  }

  function statusText(game, ply, removed) {
    if (!ply) return `Start of ${length(game)} plies.`;
    const what = colour(game, ply);
    const played = action(game, ply);
    const mover = owner(what, replay(game, ply - 1).swapped);
    const name = `${data.players[game.p[mover]]} (seat ${mover})`;
    let text = `Ply ${ply} of ${length(game)}: `;
    if (played === swap) text += `${name} swaps sides and owns Black from here on.`;
    else if (played === komi) text += `${name}, white, spends a point of komi.`;
    else text += `${name}, ${colours[what]}, ${data.moves[played]}.`;
    for (const side of ["b", "w"]) {
      const gone = removed.filter(([, stone]) => stone === side).map(([cell]) => data.moves[cell]);
      const told = gone.length > 12 ? `${gone.length} stones` : gone.join(", ");
      if (gone.length) text += ` Removed, ${colours[side]}: ${told}.`;
    }
    return text;
  }

  // ---- addresses

  function remember(address) {
    if (location.hash !== address) history.replaceState(null, "", address);
  }

  function follow(scroll) {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const game = byNumber.get(Number(wanted.get("game")));
    if (game) {
      const ply = wanted.get("ply");
      show(game, ply === null ? game.o : Number(ply) || 0, scroll);
    } else if (/^\d+,\d+$/.test(wanted.get("games") || "")) {
      [filter.player, filter.opponent] = wanted.get("games").split(",").map(Number);
      Object.assign(filter, { result: "", reason: -1 });
      shown = page;
      drawList();
      document.getElementById("games").scrollIntoView();
    }
  }

  document.addEventListener("keydown", (event) => {
    if (!open || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("select, input[type=range]")) return; // they have the arrows for themselves
    const to = { ArrowLeft: open.ply - 1, ArrowRight: open.ply + 1, Home: 0, End: length(open.game) }[event.key];
    if (to !== undefined) goTo(to);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  window.addEventListener("hashchange", () => follow(true));
  if (data.games.length) {
    list.hidden = false;
    drawList();
  }
  follow(true);
})();
