// How the chances to win went over a game.

import { element } from "./board.js";
import { percent } from "./words.js";

const WIDTH = 320;
const HEIGHT = 104;
const LEFT = 40;
const TOP = 8;
const BOTTOM = 8;

export class Graph {
  /** @param svg an svg element; text: where it is said in words; onGo(ply) */
  constructor(svg, text, onGo) {
    this.svg = svg;
    this.text = text;
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const share = ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT - 6);
      onGo(Math.max(0, Math.min(this.plies, Math.round(share * this.plies))));
    });
  }

  /**
   * @param chances of one seat to win, by ply; undefined where not known
   * @param plies how many there are
   * @param at the one shown
   * @param name whose chances they are
   */
  show(chances, plies, at, name) {
    this.plies = plies;
    this.svg.replaceChildren();
    const x = (ply) => LEFT + (plies ? ply / plies : 0) * (WIDTH - LEFT - 6);
    const y = (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
    for (const share of [0, 0.5, 1]) {
      element("line", { x1: LEFT, x2: WIDTH - 6, y1: y(share), y2: y(share), class: share === 0.5 ? "half" : "rule" }, this.svg);
      element("text", { x: LEFT - 5, y: y(share) + 3.5, "text-anchor": "end" }, this.svg, percent(share));
    }
    element("line", { x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM, class: "now" }, this.svg);
    let run = [];
    const draw = () => {
      if (run.length > 1) element("polyline", { points: run.join(" "), class: "curve" }, this.svg);
      run = [];
    };
    for (let ply = 0; ply <= plies; ply++) {
      if (chances[ply] === undefined) draw();
      else run.push(`${x(ply).toFixed(1)},${y(chances[ply]).toFixed(1)}`);
    }
    draw();
    if (chances[at] !== undefined) element("circle", { cx: x(at), cy: y(chances[at]), r: 4, class: "dot" }, this.svg);
    this.text.textContent = chances[at] === undefined ? "Looking at the game…" : `${name}: ${percent(chances[at])} to win after ply ${at}`;
  }
}
