// Who sits where: a card for each seat, where a person or a bot can take it.

import { PERSON } from "./game.js";
import { capital } from "./words.js";

export class Cards {
  /**
   * @param root the element that holds the cards
   * @param info the server's
   * @param onChange(seat, player) a seat is taken by another player
   */
  constructor(root, info, onChange) {
    this.info = info;
    this.cards = [0, 1].map((seat) => this.#card(root, seat, onChange));
  }

  #card(root, seat, onChange) {
    const card = document.createElement("section");
    card.className = "player";
    card.dataset.seat = seat;
    const who = seat === 0 ? "First player" : "Second player";
    card.setAttribute("aria-label", who);
    const stone = document.createElement("span");
    const colour = document.createElement("span");
    colour.className = "colour";
    const select = document.createElement("select");
    select.setAttribute("aria-label", who);
    select.append(new Option("Person", ""), ...this.info.bots.map((bot) => new Option(`Bot ${bot.id}`, bot.id)));
    const level = document.createElement("label");
    level.className = "level";
    const slider = document.createElement("input");
    slider.type = "range";
    slider.min = 0;
    slider.max = this.info.levels.length - 1;
    slider.setAttribute("aria-label", `Level of the ${who.toLowerCase()}`);
    const name = document.createElement("output");
    level.append(slider, name);
    const told = () => {
      slider.setAttribute("aria-valuetext", this.info.levels[slider.value]);
      name.textContent = this.info.levels[slider.value];
    };
    slider.addEventListener("input", told);
    const changed = () => onChange(seat, select.value ? { bot: select.value, level: this.info.levels[slider.value] } : PERSON);
    select.addEventListener("change", changed);
    slider.addEventListener("change", changed);
    card.append(stone, colour, select, level);
    root.append(card);
    return { card, stone, colour, select, level, slider, told };
  }

  /**
   * @param game the game
   * @param view the server's data of the position shown
   * @param winner the seat that has won, or null
   */
  show(game, view, winner) {
    this.cards.forEach(({ card, stone, colour, select, level, slider, told }, seat) => {
      const player = game.seats[seat];
      const name = view.black === seat ? "black" : "white";
      stone.className = `stone-sign ${name}`;
      const komi = game.rules.opening === "komi_pie" && name === "white" ? `, komi ${view.komi}` : "";
      colour.textContent = capital(name) + komi + (winner === seat ? ": won" : "");
      card.classList.toggle("to-move", winner === null && view.to_play.seat === seat);
      card.classList.toggle("won", winner === seat);
      select.value = player?.bot ?? "";
      level.hidden = player === PERSON;
      const at = player === PERSON ? this.info.levels.length >> 1 : this.info.levels.indexOf(player.level);
      if (document.activeElement !== slider) slider.value = at;
      told();
    });
    // Black stands above.
    this.cards[1 - view.black].card.style.order = 1;
    this.cards[view.black].card.style.order = 0;
  }
}
