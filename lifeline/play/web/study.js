// What a bot thinks of the position shown: its moves, the heat of its policy, the line it expects, and the whole game.

import { post } from "./api.js";
import { Graph } from "./graph.js";
import { percent } from "./words.js";

const $ = (id) => document.getElementById(id);
// Positions asked about at once.
const SHARE = 32;
// Plies of a line shown on the board.
const LINE = 9;

export class Study {
  /** @param info the server's; onChange(): the board is to be drawn anew; onGo(ply); onError(error) */
  constructor(info, onChange, onGo, onError) {
    this.info = info;
    this.onChange = onChange;
    this.onError = onError;
    this.graph = new Graph($("graph"), $("graph-text"), onGo);
    this.found = new Map();
    this.wanted = info.simulations;
    this.shownLine = 0;
    for (const bot of info.bots) $("adviser").append(new Option(bot.id, bot.id));
    for (const id of ["show-heat", "show-line"]) $(id).addEventListener("change", onChange);
    $("adviser").addEventListener("change", () => {
      this.game.chances = [];
      this.wanted = info.simulations;
      this.update(this.game, this.view);
    });
    $("longer").addEventListener("click", () => {
      this.wanted = Math.min(4 * this.wanted, info.most_simulations);
      this.#think();
    });
    $("advice").addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-number]");
      if (!row) return;
      this.shownLine = Number(row.dataset.number);
      $("show-line").checked = true;
      this.onChange();
    });
  }

  get open() {
    return !$("pane-study").hidden;
  }

  /** What is known of the position shown, or null. */
  get analysis() {
    return this.open ? (this.found.get(this.key) ?? null) : null;
  }

  get heat() {
    if (!this.analysis || !$("show-heat").checked) return null;
    return this.analysis.policy;
  }

  /** The stones expected: label, colour and which ply it is; of cells that come twice the first. */
  get line() {
    if (!this.analysis || !$("show-line").checked) return [];
    const plies = (this.analysis.moves[this.shownLine]?.line ?? []).slice(0, LINE);
    return plies
      .map(({ move, colour }, number) => ({ label: move, colour, number: number + 1 }))
      .filter(({ label }, number) => /[0-9]/.test(label) && plies.findIndex((ply) => ply.move === label) === number);
  }

  /** Another position is shown. */
  update(game, view) {
    this.game = game;
    this.view = view;
    const key = JSON.stringify([game.query(), $("adviser").value]);
    if (key !== this.key) {
      this.key = key;
      this.shownLine = 0;
      this.wanted = this.found.get(key)?.asked ?? this.info.simulations;
      this.thinking?.abort();
    }
    if (!this.open) return;
    this.#think();
    this.#look();
    this.show();
  }

  /** Draw table and graph. */
  show() {
    if (!this.open || !this.view) return;
    const { game } = this;
    this.graph.show(game.chances, game.moves.length, game.at, game.name(0));
    const table = $("advice");
    table.replaceChildren();
    const analysis = this.analysis;
    const over = this.view.result !== null;
    $("longer").disabled = over || !analysis || this.wanted >= this.info.most_simulations;
    const caption = table.createCaption();
    if (over) {
      caption.textContent = "The game is over.";
      return;
    }
    if (!analysis) {
      caption.textContent = "Thinking…";
      return;
    }
    const solved = analysis.solved === null ? "" : analysis.solved > 0 ? ", solved: won" : ", solved: lost";
    caption.textContent = `${percent(analysis.win)} to win for the player to move; ${analysis.simulations} simulations${solved}`;
    const head = table.createTHead().insertRow();
    for (const text of ["Move", "Wins", "Visits", "Expected"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      head.append(cell);
    }
    const body = table.createTBody();
    analysis.moves.slice(0, 8).forEach((move, number) => {
      const row = body.insertRow();
      row.dataset.number = number;
      if (number === this.shownLine && $("show-line").checked) row.className = "chosen";
      const choose = document.createElement("button");
      choose.type = "button";
      choose.textContent = move.move;
      choose.setAttribute("aria-label", `Show the line of ${move.move}`);
      row.insertCell().append(choose);
      row.insertCell().textContent = percent(move.win);
      row.insertCell().textContent = move.visits;
      row.insertCell().textContent = move.line.slice(1, 6).map((ply) => ply.move).join(" ");
    });
  }

  async #think() {
    if (this.view.result !== null) return;
    const { key, wanted } = this;
    if ((this.found.get(key)?.asked ?? 0) >= wanted) return;
    this.thinking?.abort();
    this.thinking = new AbortController();
    const query = { ...this.game.query(), model: $("adviser").value, simulations: wanted, seed: this.game.seed };
    try {
      const analysis = await post("/api/analyse", query, this.thinking.signal);
      this.found.set(key, { ...analysis, asked: wanted });
      if (this.found.size > 400) this.found.delete(this.found.keys().next().value);
      if (key !== this.key) return;
      this.game.chances[this.game.at] = analysis.first;
      this.onChange();
    } catch (error) {
      this.onError(error);
    }
  }

  /** Have the rest of the game judged at a glance. */
  async #look() {
    if (this.looking) return;
    this.looking = true;
    try {
      for (;;) {
        const { game } = this;
        const plies = [...Array(game.moves.length + 1).keys()].filter((ply) => game.chances[ply] === undefined).slice(0, SHARE);
        if (!plies.length || !this.open) break;
        const asked = game.moves.join();
        const { first } = await post("/api/values", { ...game.whole(), model: $("adviser").value, plies });
        if (game !== this.game || asked !== game.moves.join()) continue;
        plies.forEach((ply, number) => (game.chances[ply] ??= first[number]));
        this.show();
      }
    } catch (error) {
      this.onError(error);
    } finally {
      this.looking = false;
    }
  }
}
