// The page: one game, and who does what in it.

import { Refused, get, pause, post, setTrouble } from "./api.js";
import { BoardView } from "./board.js";
import { Cards } from "./cards.js";
import { NewGameDialog, chooseSide } from "./dialogs.js";
import { Game, PERSON } from "./game.js";
import { gameOf, linkOf } from "./link.js";
import { MoveList } from "./moves.js";
import { Study } from "./study.js";
import { capital, effectWords, moveWords, outcome, percent, statusWords } from "./words.js";

const $ = (id) => document.getElementById(id);
// Between the moves of two bots, so that they can be followed.
const BOT_PAUSE = 500;

let info, game, view, board, cards, moveList, study, newGame;
let hint = null;
let paused = false;
let working = null; // aborts what is being asked for the position shown
let boards = new Map();

async function start() {
  setTrouble((line) => {
    $("trouble").textContent = line ?? "";
    $("trouble").hidden = line === null;
  });
  info = await get("/api/info");
  board = new BoardView($("board"), { onPlace: act, onPoint: showTip });
  cards = new Cards($("players"), info, (seat, player) => {
    game.seats[seat] = player;
    paused = false;
    show().catch(tell);
  });
  moveList = new MoveList($("moves"), go);
  study = new Study(info, draw, go, tell);
  newGame = new NewGameDialog(info, begin);
  const models = info.bots.filter((bot) => bot.is_model);
  $("about").textContent = models.length
    ? models.map((bot) => `Bot ${bot.id}: ${bot.description}. It plays on every board.`).join(" ")
    : "No trained bot is here: the opponent judges positions by random games. lifeline serve --model FILE brings a better one.";
  bind();
  await openLink();
}

function fresh() {
  const bot = { bot: info.bots[0].id, level: info.levels[info.levels.length >> 1] };
  const rules = { base: info.bots[0].bases[0] ?? 5, opening: "strong_pie", komi: 0, adjacent_setup: "allowed" };
  return new Game(rules, { seats: [PERSON, bot] });
}

/** Show the game of the address; a bad one is told, and leads to a new game. */
async function openLink() {
  if (location.hash === linkNow) return;
  try {
    game = gameOf(location.hash, info) ?? fresh();
    await show();
  } catch (error) {
    if (error.name === "AbortError") return;
    game = fresh();
    await show();
    notice(`This link does not lead to a game: ${error.message}`);
  }
}

/** Start a game; in komi pie the komi and the sides are settled before. */
async function begin({ rules, seats }) {
  paused = false;
  notice(null);
  try {
    if (rules.opening === "komi_pie") [rules, seats] = await settle(rules, seats);
    if (rules === null) return;
    game = new Game(rules, { seats });
    await show();
  } catch (error) {
    tell(error);
  }
}

async function settle(rules, [namer, chooser]) {
  const asked = (player) => ({ ...rules, model: player.bot, seed: Math.floor(Math.random() * 2 ** 48) });
  if (namer !== PERSON) rules = { ...rules, komi: (await post("/api/komi", asked(namer))).komi };
  const points = `${rules.komi} point${rules.komi === 1 ? "" : "s"}`;
  let side;
  if (chooser !== PERSON) {
    side = (await post("/api/side", asked(chooser))).colour;
    notice(`Komi ${rules.komi}: the ${namer === PERSON ? "bot" : "second bot"} takes ${capital(side)}.`);
  } else {
    const who = namer === PERSON ? "The first player" : "The bot";
    side = await chooseSide(`${who} names a komi of ${points}: White may spend one in place of placing a stone, as long as there are any. Black begins.`);
    if (side === null) return [null, null];
  }
  return [rules, side === "black" ? [chooser, namer] : [namer, chooser]];
}

let linkNow = null;

/** Fetch and draw the position shown, and let a bot move whose turn it is. */
async function show() {
  working?.abort();
  working = new AbortController();
  const { signal } = working;
  hint = null;
  const fetched = await post("/api/game", { ...game.whole(), at: game.at }, signal);
  if (!boards.has(game.rules.base)) boards.set(game.rules.base, await get(`/api/board/${game.rules.base}`, signal));
  if (signal.aborted) return;
  // Two-stone turns of a link are told as plies.
  if (fetched.moves.length !== game.moves.length) game.at = fetched.moves.length;
  game.moves = fetched.moves.map((move) => move.move);
  view = fetched;
  if (view.result) game.chances[game.at] = view.result.winner === 0 ? 1 : 0;
  const geometry = boards.get(game.rules.base);
  if (board.data !== geometry) board.build(geometry);
  linkNow = linkOf(game, true);
  history.replaceState(null, "", linkNow);
  draw();
  study.update(game, view);
  run(signal).catch(tell);
}

function isOver() {
  return outcome(game, view) !== null;
}

function botToMove() {
  return !isOver() && game.seats[view.to_play.seat] !== PERSON;
}

/** Let the bot move if it is its turn, nobody has stopped it, and nothing is being looked up. */
async function run(signal) {
  if (!botToMove() || paused || !game.atEnd) return;
  const { bot, level } = game.seats[view.to_play.seat];
  if (game.seats.every((player) => player !== PERSON)) await pause(BOT_PAUSE, signal);
  const found = await post("/api/move", { ...game.query(), model: bot, level, seed: game.seed }, signal);
  if (signal.aborted) return;
  game.play(found.move);
  await show();
}

/** A person's ply. */
async function act(move) {
  notice(null);
  paused = false;
  const before = [game.moves, game.at];
  game.play(move);
  try {
    await show();
  } catch (error) {
    if (error instanceof Refused) [game.moves, game.at] = before;
    tell(error);
  }
}

async function go(ply) {
  if (ply < 0 || ply > game.moves.length || ply === game.at) return;
  notice(null);
  game.at = ply;
  try {
    await show();
  } catch (error) {
    tell(error);
  }
}

/** Back to where a person was to move before this; where no person plays, one ply. */
function undoTarget() {
  const people = (ply) => game.seats[view.moves[ply].seat] === PERSON;
  for (let ply = game.at - 1; ply >= 0; ply--) if (people(ply)) return ply;
  return game.seats.some((player) => player === PERSON) ? null : game.at > 0 ? game.at - 1 : null;
}

function redoTarget() {
  if (game.atEnd) return null;
  for (let ply = game.at + 1; ply < game.moves.length; ply++) if (game.seats[view.moves[ply].seat] === PERSON) return ply;
  return game.moves.length;
}

function draw() {
  const result = outcome(game, view);
  const bot = botToMove();
  const thinking = bot && game.atEnd && !paused;
  const playable = !result && !bot;
  board.render({
    stones: view.stones,
    colour: view.to_play.colour,
    legal: new Set(view.legal),
    effects: view.effects,
    last: view.last,
    playable,
    showLegal: $("show-legal").checked,
    labels: $("show-labels").checked,
    shape: $("show-groups").checked ? { groups: view.groups, regions: view.regions } : null,
    heat: study.heat,
    line: study.line,
    hint,
  });
  const status = $("status");
  const words = statusWords(game, view, thinking);
  if (status.textContent !== words) status.textContent = words;
  status.classList.toggle("over", result !== null);
  cards.show(game, view, result?.seat ?? null);
  $("swap").hidden = !(playable && view.may_swap);
  $("spend").hidden = !(playable && view.may_spend);
  $("spend").textContent = `Spend a point of komi (${view.komi} left)`;
  $("go-on").hidden = !(bot && !thinking);
  $("undo").disabled = undoTarget() === null;
  $("redo").disabled = redoTarget() === null;
  $("hint").disabled = !playable;
  $("resign").disabled = !playable || !game.atEnd;
  $("pause").hidden = !(game.seats.every((player) => player !== PERSON) && !result);
  $("pause").textContent = paused ? "Go on" : "Pause";
  $("back").disabled = $("to-start").disabled = game.at === 0;
  $("forward").disabled = $("to-end").disabled = game.atEnd;
  $("where").textContent = `${game.at} of ${game.moves.length}`;
  moveList.show(view.moves, game.at);
  $("position-text").value = view.position;
  $("link-text").value = location.href.replace(/#.*$/, "") + linkOf(game, false);
  showTip(board.pointed);
  study.show();
}

/** What is pointed at, or what was played last. */
function showTip(label) {
  const tip = $("tip");
  tip.classList.remove("notice");
  if (label && view.legal.includes(label) && !isOver() && !botToMove()) {
    const words = effectWords(view.effects[label], view.to_play.colour);
    tip.textContent = words ? `${label} ${words}` : label;
  } else if (label) {
    const group = view.groups.find((g) => g.cells.includes(label));
    const number = group?.lifelines.length ?? 0;
    const lives = number === 1 ? "hangs on one region" : number ? `lives by ${number} regions` : "has no lifeline";
    const size = group?.cells.length === 1 ? "a lone stone" : `a group of ${group?.cells.length}`;
    tip.textContent = group ? `${label}: ${size}, ${lives}` : label;
  } else if (noticed) {
    tip.textContent = noticed;
    tip.classList.add("notice");
  } else if ($("show-groups").checked && view.regions.length === 1) {
    tip.textContent = "One region: every group hangs on it.";
  } else {
    tip.textContent = view?.moves[game.at - 1] ? `Last: ${moveWords(view.moves[game.at - 1])}` : "";
  }
}

let noticed = null;

/** A line below the board that stays until something is done. */
function notice(line) {
  noticed = line;
  if (view) showTip(null);
}

function tell(error) {
  if (error.name === "AbortError") return;
  notice(capital(error.message));
}

async function giveHint() {
  const button = $("hint");
  button.disabled = true;
  notice("Thinking about a hint…");
  const player = game.seats.find((p) => p !== PERSON);
  const { signal } = working;
  try {
    const query = { ...game.query(), model: player?.bot ?? info.bots[0].id, seed: game.seed };
    const found = await post("/api/analyse", query, signal);
    hint = /[0-9]/.test(found.best) ? found.best : null;
    notice(`Hint: ${found.best === "swap" ? "swap sides" : found.best === "komi" ? "spend a point of komi" : found.best}, ${percent(found.win)} to win`);
    draw();
  } catch (error) {
    tell(error);
  }
}

function openTab(tab) {
  for (const other of document.querySelectorAll("[role=tab]")) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  study.update(game, view);
  draw();
}

async function save(kind) {
  try {
    const names = [0, 1].map((seat) => (game.seats[seat] === PERSON ? "person" : game.name(seat)));
    const texts = await post("/api/export", { ...game.whole(), players: names, resigned: game.resigned });
    const text = (kind === "record" ? texts.record : texts.moves) + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: kind === "record" ? "application/json" : "text/plain" }));
    link.download = kind === "record" ? "lifeline-game.jsonl" : "lifeline-game.txt";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    tell(error);
  }
}

async function load(text) {
  $("load-error").textContent = "";
  if (!text.trim()) return;
  try {
    const { base, opening, komi, adjacent_setup } = game.rules;
    const found = await post("/api/import", { text, base, opening, komi, adjacent_setup });
    const resigned = found.result?.reason === "resigned" ? 1 - found.result.winner : null;
    game = new Game(found.rules, { start: found.start, moves: found.moves, resigned });
    $("load-text").value = "";
    notice(found.records > 1 ? `The first of ${found.records} games` : `Loaded: ${found.moves.length} plies`);
    await show();
  } catch (error) {
    if (!(error instanceof Refused)) return tell(error);
    $("load-error").textContent = capital(error.message);
  }
}

async function copy(id) {
  const field = $(id);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    document.execCommand("copy"); // away from localhost pages without TLS have no clipboard
  }
  notice("Copied");
}

function bind() {
  const on = (id, action) => $(id).addEventListener("click", action);
  on("new-game", () => newGame.open());
  on("swap", () => act("swap"));
  on("spend", () => act("komi"));
  on("go-on", () => {
    paused = false;
    game.moves = game.moves.slice(0, game.at);
    game.resigned = null;
    show().catch(tell);
  });
  on("undo", () => go(undoTarget() ?? game.at));
  on("redo", () => go(redoTarget() ?? game.at));
  on("hint", giveHint);
  on("resign", () => {
    game.resigned = view.to_play.seat;
    show().catch(tell);
  });
  on("pause", () => {
    paused = !paused;
    draw();
    show().catch(tell);
  });
  on("to-start", () => go(0));
  on("back", () => go(game.at - 1));
  on("forward", () => go(game.at + 1));
  on("to-end", () => go(game.moves.length));
  on("copy-position", () => copy("position-text"));
  on("copy-link", () => copy("link-text"));
  on("save-record", () => save("record"));
  on("save-moves", () => save("moves"));
  on("load", () => load($("load-text").value));
  $("load-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) load(await file.text());
  });
  for (const id of ["show-legal", "show-groups", "show-labels"]) $(id).addEventListener("change", draw);
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, number) => {
    tab.addEventListener("click", () => openTab(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.stopPropagation();
      const next = tabs[(number + step + tabs.length) % tabs.length];
      next.focus();
      openTab(next);
    });
  });
  addEventListener("hashchange", openLink);
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest?.("input, select, textarea, dialog, .cell")) return;
    const target = { ArrowLeft: game?.at - 1, ArrowRight: game?.at + 1, Home: 0, End: game?.moves.length }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    go(target);
  });
}

start().catch((error) => {
  $("status").textContent = `The page cannot start: ${error.message}`;
});
