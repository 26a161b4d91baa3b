// The two dialogs: a new game, and the choice of a side in komi pie.

import { PERSON } from "./game.js";
import { OPENINGS } from "./words.js";

const $ = (id) => document.getElementById(id);

export class NewGameDialog {
  /** @param info the server's; onStart({rules, seats, komiIsNamed}) */
  constructor(info, onStart) {
    this.info = info;
    this.dialog = $("new-dialog");
    for (const base of info.bases) $("new-base").append(new Option(`Base ${base}, ${3 * base * (base - 1) + 1} cells`, base));
    for (const opening of info.openings) $("new-opening").append(new Option(OPENINGS[opening][0], opening));
    for (const bot of info.bots) $("new-bot").append(new Option(bot.id, bot.id));
    $("new-level").max = info.levels.length - 1;
    $("new-level").value = info.levels.length >> 1;
    $("new-base").value = info.bots[0].bases[0] ?? 5;
    this.dialog.addEventListener("input", () => this.#told());
    $("new-cancel").addEventListener("click", () => this.dialog.close());
    this.dialog.querySelector("form").addEventListener("submit", () => onStart(this.#chosen()));
  }

  open() {
    this.#told();
    this.dialog.showModal();
  }

  get #who() {
    return this.dialog.querySelector("[name=seats]:checked").value;
  }

  #told() {
    const opening = $("new-opening").value;
    const bot = this.info.bots.find((b) => b.id === $("new-bot").value);
    $("new-opening-note").textContent = OPENINGS[opening][1];
    $("new-adjacent-part").hidden = opening === "strong_pie";
    $("new-komi-part").hidden = opening !== "komi_pie" || !["first", "people"].includes(this.#who);
    $("new-bot-part").hidden = this.#who === "people";
    const other = bot.bases.length && !bot.bases.includes(Number($("new-base").value));
    $("new-bot-note").textContent = `${bot.description}.${other ? " On this board it plays without having been trained for it." : ""}`;
    $("new-level-name").textContent = this.info.levels[$("new-level").value];
  }

  #chosen() {
    const bot = { bot: $("new-bot").value, level: this.info.levels[$("new-level").value] };
    const seats = { first: [PERSON, bot], second: [bot, PERSON], people: [PERSON, PERSON], bots: [bot, bot] }[this.#who];
    const opening = $("new-opening").value;
    const komi = Math.min(99, Math.max(0, Math.round(Number($("new-komi").value) || 0)));
    const rules = {
      base: Number($("new-base").value),
      opening,
      komi: opening === "komi_pie" && seats[0] === PERSON ? komi : 0,
      adjacent_setup: opening !== "strong_pie" && $("new-adjacent").checked ? "forbidden" : "allowed",
    };
    return { rules, seats };
  }
}

/** Ask the person which side to take; returns "black" or "white", or null where the dialog was left. */
export function chooseSide(text) {
  const dialog = $("side-dialog");
  $("side-text").textContent = text;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue || null), { once: true });
  });
}
