// A game in the part of an address behind the #, and back.

import { Game, PERSON } from "./game.js";

const PLAIN = { opening: "strong_pie", komi: 0, adjacent_setup: "allowed" };

/** The address of a game; without its players what others need of it. */
export function linkOf(game, players) {
  const fields = new URLSearchParams();
  fields.set("base", game.rules.base);
  for (const [key, plain] of Object.entries(PLAIN)) if (game.rules[key] !== plain) fields.set(key, game.rules[key]);
  if (game.start) fields.set("start", game.start);
  if (game.moves.length) fields.set("moves", game.moves.join("."));
  if (!game.atEnd) fields.set("at", game.at);
  if (players) {
    for (const [seat, key] of [[0, "first"], [1, "second"]]) {
      const player = game.seats[seat];
      if (player !== PERSON) fields.set(key, `${player.level}.${player.bot}`);
    }
    fields.set("seed", game.seed);
    if (game.resigned !== null) fields.set("resigned", game.resigned);
  }
  return `#${fields}`;
}

/**
 * The game of an address; null where there is none.
 * Whether its moves are legal only the server can say.
 */
export function gameOf(hash, info) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  if ([...fields].length === 0) return null;
  const number = (key, plain, low, high) => {
    const text = fields.get(key);
    if (text === null) return plain;
    if (!/^[0-9]{1,16}$/.test(text) || Number(text) < low || Number(text) > high) {
      throw new Error(`${key} must be a whole number from ${low} to ${high}, not ${text.slice(0, 20) || "nothing"}`);
    }
    return Number(text);
  };
  const rules = {
    base: number("base", null, info.bases[0], info.bases.at(-1)),
    opening: fields.get("opening") ?? PLAIN.opening,
    komi: number("komi", 0, 0, 99),
    adjacent_setup: fields.get("adjacent_setup") ?? PLAIN.adjacent_setup,
  };
  if (rules.base === null) throw new Error("it does not name a board");
  const moves = (fields.get("moves") ?? "").split(".").filter(Boolean);
  const seats = ["first", "second"].map((key) => {
    const [level, ...bot] = (fields.get(key) ?? "").split(".");
    const id = bot.join(".");
    // A bot that is gone leaves its seat to a person.
    return info.levels.includes(level) && info.bots.some((b) => b.id === id) ? { bot: id, level } : PERSON;
  });
  return new Game(rules, {
    start: fields.get("start"),
    moves,
    at: number("at", moves.length, 0, moves.length),
    seats,
    seed: number("seed", undefined, 0, 2 ** 53 - 1),
    resigned: number("resigned", null, 0, 1),
  });
}
