// The list of moves: a line a turn, each ply a button.

import { moveWords } from "./words.js";

export class MoveList {
  /** @param root the list; onGo(ply): the position after so many plies is to be shown */
  constructor(root, onGo) {
    this.root = root;
    this.onGo = onGo;
    root.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) onGo(Number(button.dataset.ply));
    });
  }

  show(moves, at) {
    this.root.replaceChildren();
    let line = null;
    moves.forEach((move, index) => {
      if (line?.dataset.turn !== String(move.turn)) {
        line = document.createElement("li");
        line.dataset.turn = move.turn;
        const number = document.createElement("span");
        number.className = "number";
        number.textContent = move.turn;
        const sign = document.createElement("span");
        sign.className = `stone-sign small ${move.colour}`;
        line.append(number, sign);
        this.root.append(line);
      }
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.ply = index + 1;
      button.textContent = move.move + (move.removed ? ` ×${move.removed}` : "");
      button.setAttribute("aria-label", `Turn ${move.turn}: ${moveWords(move)}`);
      if (index + 1 === at) button.setAttribute("aria-current", "step");
      // Those that are taken back can still be gone to.
      button.classList.toggle("ahead", index + 1 > at);
      line.append(button);
    });
    const current = this.root.querySelector("[aria-current]");
    if (current) {
      // Within the list alone: the page stays where it is.
      const top = current.closest("li").offsetTop;
      if (top < this.root.scrollTop || top > this.root.scrollTop + this.root.clientHeight - 30) this.root.scrollTop = top - this.root.clientHeight / 2;
    } else {
      this.root.scrollTop = 0;
    }
  }
}
