// The board: cells to look at, point at and place on. What is legal and what happens it is told.

const SVG = "http://www.w3.org/2000/svg";
const STONE = 15.4;
// Smaller cells than this, in pixels, take two taps: one to look, one to place.
const SMALL = 34;

export function element(name, attributes = {}, parent = null, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  parent?.append(made);
  return made;
}

export class BoardView {
  /**
   * @param svg an svg element
   * @param listeners onPlace(label): a person wants a stone there; onPoint(label or null): a cell is pointed at
   */
  constructor(svg, { onPlace = () => {}, onPoint = () => {} } = {}) {
    this.svg = svg;
    this.onPlace = onPlace;
    this.onPoint = onPoint;
    this.cells = new Map();
    this.pointed = null;
    this.state = null;
    svg.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.point(null));
    svg.addEventListener("focusout", () => this.point(null));
    svg.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Lay out a board; `data` is the server's. */
  build(data) {
    this.data = data;
    this.cells = new Map();
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${data.width} ${data.height}`);
    this.svg.setAttribute("aria-label", `Board of base ${data.base}`);
    const rows = new Map();
    data.cells.forEach((cell, index) => {
      if (!rows.has(cell.row)) rows.set(cell.row, element("g", { role: "row" }, this.svg));
      const place = `translate(${cell.x} ${cell.y})`;
      const group = element("g", { class: "cell", role: "gridcell", tabindex: "-1", transform: place, "data-cell": cell.label }, rows.get(cell.row));
      const path = element("path", { d: data.hexagon }, group);
      group.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && this.point(cell.label));
      group.addEventListener("focus", () => this.#focused(cell.label));
      group.addEventListener("click", (event) => this.#clicked(cell.label, event));
      this.cells.set(cell.label, { ...cell, index, group, path });
    });
    const [first] = [...this.cells.values()].filter((cell) => cell.row === data.base - 1).slice(data.base - 1);
    this.current = first.label;
    first.group.setAttribute("tabindex", "0");
    const over = (name) => element("g", { class: name, "pointer-events": "none", "aria-hidden": "true" }, this.svg);
    this.layers = Object.fromEntries(["legal", "stones", "last", "texts", "ghosts", "marks", "focus"].map((n) => [n, over(n)]));
    const edge = over("edge");
    // Small boards are drawn large: the texts around them need not be.
    edge.style.fontSize = `${Math.min(13, 1.45 * (2 * data.base - 1))}px`;
    for (const { text, x, y } of data.texts) element("text", { x, y: y + 4.5 }, edge, text);
  }

  /**
   * Draw a position.
   * @param state {stones: a character a cell, colour: whose stone is next, legal: Set of labels, effects, last: labels,
   *   playable: whether a person may place now, showLegal, labels: whether to write them in cells,
   *   heat: {label: share} or null, line: [{label, colour, number}], hint: label or null, shape: {groups, regions} or null}
   */
  render(state) {
    this.state = state;
    this.covered = new Set((state.line ?? []).map(({ label }) => label));
    for (const layer of Object.values(this.layers)) layer.replaceChildren();
    const regionOf = new Map();
    // One region alone is the whole board: there is nothing to tell apart.
    const shape = state.shape?.regions.length > 1 ? state.shape : null;
    shape?.regions.forEach((region, number) => region.cells.forEach((label) => regionOf.set(label, number)));
    for (const cell of this.cells.values()) {
      const stone = state.stones[cell.index];
      const legal = state.playable && state.legal.has(cell.label);
      const region = regionOf.get(cell.label);
      cell.group.setAttribute("class", ["cell", legal ? "open" : "", region === undefined ? "" : `region region-${region % 8}`].join(" ").trim());
      cell.group.setAttribute("aria-label", this.#words(cell, stone));
      cell.group.setAttribute("aria-disabled", String(!legal));
      const heat = state.heat?.[cell.label];
      cell.path.style.fill = heat ? `color-mix(in oklab, var(--heat) ${Math.round(18 + 82 * heat)}%, var(--cell))` : "";
      if (stone !== ".") this.#stone(cell, stone);
      else if (state.showLegal && legal && !heat && !shape && !this.covered.has(cell.label)) element("circle", { cx: cell.x, cy: cell.y, r: 3.4 }, this.layers.legal);
      this.#texts(cell, stone, heat, region);
    }
    for (const label of state.last) this.#ring(label, "last-ring");
    if (state.hint) this.#ring(state.hint, "hint-ring");
    if (shape) this.#hanging(shape);
    for (const { label, colour, number } of state.line ?? []) this.#numbered(label, colour, number);
    this.#preview();
    this.#showFocus();
  }

  /** Show what a stone on a cell would do; null ends it. */
  point(label) {
    if (label === this.pointed) return;
    this.pointed = label;
    this.#preview();
    this.onPoint(label);
  }

  #words(cell, stone) {
    if (stone !== ".") return `${cell.label}, ${stone === "b" ? "black" : "white"}${this.state.last.includes(cell.label) ? ", last move" : ""}`;
    if (!this.state.playable) return `${cell.label}, empty`;
    if (!this.state.legal.has(cell.label)) return `${cell.label}, empty, no stone may be placed here`;
    const effect = this.state.effects[cell.label];
    const taken = effect ? [...effect.captured, ...effect.lost].length : 0;
    return `${cell.label}, empty${taken ? `, removes ${taken}` : ""}`;
  }

  #stone(cell, stone) {
    element("circle", { cx: cell.x, cy: cell.y, r: STONE, class: `stone ${stone === "b" ? "black" : "white"}` }, this.layers.stones);
  }

  #texts(cell, stone, heat, region) {
    if (this.covered.has(cell.label)) return;
    const ground = stone === "b" ? "on-black" : stone === "w" ? "on-white" : heat ? "on-heat" : "on-cell";
    if (heat) {
      const text = heat < 0.005 ? "<1" : String(Math.round(100 * heat));
      element("text", { x: cell.x, y: cell.y + (this.state.labels ? 8 : 4.5), class: `share ${ground}${heat >= 0.35 ? " deep" : ""}` }, this.layers.texts, text);
    } else if (region !== undefined) {
      element("text", { x: cell.x, y: cell.y + 4, class: "region-name" }, this.layers.texts, String.fromCharCode(65 + (region % 26)));
    }
    if (this.state.labels) {
      const up = heat || region !== undefined ? -6 : 4;
      element("text", { x: cell.x, y: cell.y + up, class: `label ${ground}` }, this.layers.texts, cell.label);
    }
  }

  #ring(label, name) {
    const { x, y } = this.cells.get(label);
    element("circle", { cx: x, cy: y, r: STONE - 2.5, class: name }, this.layers.last);
  }

  /** Groups that one region alone keeps: each stone bears that region's letter. */
  #hanging(shape) {
    for (const group of shape.groups) {
      if (group.lifelines.length !== 1) continue;
      for (const label of group.cells) {
        const { x, y } = this.cells.get(label);
        const name = String.fromCharCode(65 + (group.lifelines[0] % 26));
        element("circle", { cx: x, cy: y, r: STONE - 1.5, class: "hanging" }, this.layers.marks);
        element("text", { x, y: y + 4, class: `hanging-name ${group.colour}` }, this.layers.marks, name);
      }
    }
  }

  #numbered(label, colour, number) {
    const { x, y } = this.cells.get(label);
    element("circle", { cx: x, cy: y, r: STONE - 1, class: `line-stone ${colour}` }, this.layers.marks);
    element("text", { x, y: y + 4.5, class: `line-number ${colour}` }, this.layers.marks, number);
  }

  #preview() {
    const layer = this.layers?.ghosts;
    if (!layer) return;
    layer.replaceChildren();
    const cell = this.cells.get(this.pointed);
    if (!cell || !this.state?.playable || !this.state.legal.has(cell.label)) return;
    element("circle", { cx: cell.x, cy: cell.y, r: STONE, class: `stone ghost ${this.state.colour}` }, layer);
    const effect = this.state.effects[cell.label];
    for (const label of [...(effect?.captured ?? []), ...(effect?.lost ?? [])]) {
      const { x, y } = this.cells.get(label);
      element("path", { d: `M${x - 8} ${y - 8}L${x + 8} ${y + 8}M${x + 8} ${y - 8}L${x - 8} ${y + 8}`, class: "cross-back" }, layer);
      element("path", { d: `M${x - 8} ${y - 8}L${x + 8} ${y + 8}M${x + 8} ${y - 8}L${x - 8} ${y + 8}`, class: "cross" }, layer);
    }
  }

  #clicked(label, event) {
    const width = this.svg.getBoundingClientRect().width / (2 * this.data.base - 1);
    if (event.pointerType === "touch" && width < SMALL && this.pointed !== label) {
      this.point(label);
      return;
    }
    if (this.state?.playable && this.state.legal.has(label)) this.onPlace(label);
  }

  #focused(label) {
    this.cells.get(this.current)?.group.setAttribute("tabindex", "-1");
    this.current = label;
    this.cells.get(label).group.setAttribute("tabindex", "0");
    // A tap or click brings focus too; what it means is decided when it is over.
    if (this.cells.get(label).group.matches(":focus-visible")) this.point(label);
    this.#showFocus();
  }

  #showFocus() {
    this.layers.focus.replaceChildren();
    const active = document.activeElement;
    if (!active?.matches?.(".cell:focus-visible") || !this.svg.contains(active)) return;
    const { x, y } = this.cells.get(active.dataset.cell);
    element("path", { d: this.data.hexagon, transform: `translate(${x} ${y})`, class: "focus-ring" }, this.layers.focus);
  }

  #key(event) {
    const here = this.cells.get(event.target.dataset?.cell);
    if (!here || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.state?.playable && this.state.legal.has(here.label)) this.onPlace(here.label);
      return;
    }
    const next = this.#neighbour(here, event.key);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    next?.group.focus();
  }

  /** The cell a key leads to: undefined where the key is none for moving, null where the board ends. */
  #neighbour(here, key) {
    const rowOf = (number) => [...this.cells.values()].filter((cell) => cell.row === number);
    const row = rowOf(here.row);
    if (key === "ArrowLeft") return row[row.indexOf(here) - 1] ?? null;
    if (key === "ArrowRight") return row[row.indexOf(here) + 1] ?? null;
    if (key === "Home") return row[0];
    if (key === "End") return row.at(-1);
    if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
    // Two cells of the next row are as near: going up and down again comes back.
    const lean = key === "ArrowUp" ? 1 : -1;
    const near = rowOf(here.row + (key === "ArrowUp" ? -1 : 1));
    const distance = (cell) => Math.abs(cell.x - here.x - lean);
    return near.sort((one, other) => distance(one) - distance(other))[0] ?? null;
  }
}
