// A game as the page holds it: rules, plies, which position is looked at, and who sits where.

export const PERSON = null;

export class Game {
  /**
   * @param rules {base, opening, komi, adjacent_setup}
   * @param options start: position text or null; moves: plies; at: which position; seats: for each seat PERSON or
   *   {bot, level}; seed; resigned: the seat that gave up, or null
   */
  constructor(rules, { start = null, moves = [], at = moves.length, seats = [PERSON, PERSON], seed, resigned = null } = {}) {
    this.rules = rules;
    this.start = start;
    this.moves = moves;
    this.at = Math.min(at, moves.length);
    this.seats = seats;
    this.seed = seed ?? Math.floor(Math.random() * 2 ** 48);
    this.resigned = resigned;
    // Chances of seat 0 to win, by ply, as far as they are known.
    this.chances = [];
  }

  /** The game as the server takes it, up to the position looked at. */
  query() {
    return { ...this.whole(), moves: this.moves.slice(0, this.at) };
  }

  /** The whole game as the server takes it. */
  whole() {
    return { ...this.rules, start: this.start, moves: this.moves };
  }

  get atEnd() {
    return this.at === this.moves.length;
  }

  /** Play a ply from the position looked at; another continuation is forgotten. */
  play(move) {
    if (this.moves[this.at] !== move) {
      this.moves = [...this.moves.slice(0, this.at), move];
      this.chances.length = Math.min(this.chances.length, this.at + 1);
      this.resigned = null;
    }
    this.at += 1;
  }

  /** A seat in words. */
  name(seat) {
    const player = this.seats[seat];
    if (player !== PERSON) return `${player.bot} (${player.level})`;
    return this.seats[1 - seat] !== PERSON ? "You" : seat === 0 ? "First player" : "Second player";
  }
}
