// The pictures of the rules: positions that the server explains and the board draws, each of which can be played on.

import { get, post } from "./api.js";
import { BoardView, element } from "./board.js";

async function draw(figure) {
  const { base, position, point, groups, labels } = figure.dataset;
  const [geometry, view] = await Promise.all([get(`/api/board/${base}`), post("/api/game", { base: Number(base), start: position })]);
  const svg = element("svg", { class: "board", role: "img", "aria-label": `A board: ${view.position}` });
  const link = document.createElement("a");
  link.href = `/#${new URLSearchParams({ base, start: position })}`;
  link.title = "Play on from here";
  link.append(svg);
  figure.prepend(link);
  const board = new BoardView(svg);
  board.build(geometry);
  // Pictures are one stop for the keyboard: the link.
  for (const cell of svg.querySelectorAll("[tabindex]")) cell.removeAttribute("tabindex");
  board.render({
    stones: view.stones,
    colour: view.to_play.colour,
    legal: new Set(view.legal),
    effects: view.effects,
    last: [],
    playable: point !== undefined,
    showLegal: false,
    labels: labels !== undefined,
    shape: groups === undefined ? null : view,
    heat: null,
    line: [],
    hint: null,
  });
  if (point) board.point(point);
}

for (const figure of document.querySelectorAll("figure[data-position]")) draw(figure);
