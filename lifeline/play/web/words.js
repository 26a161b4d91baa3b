// What the page says.

export const OPENINGS = {
  strong_pie: ["Strong pie", "Each player's first turn is two stones that do not touch; the second player may swap sides after the first two."],
  weak_pie: ["Weak pie", "One stone a turn; the second player may swap sides after the first stone. Nothing is removed before the fourth."],
  komi_pie: ["Komi pie", "The first player names a komi, the second takes a side. White may spend a point of komi in place of a stone."],
};

export function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

export function stones(count, colour) {
  return `${count} ${colour} stone${count === 1 ? "" : "s"}`;
}

/** A ply in words, of an entry of the server's list of moves. */
export function moveWords(move) {
  if (move.move === "swap") return "swaps sides";
  if (move.move === "komi") return `${capital(move.colour)} spends a point of komi`;
  const gone = move.removed ? `, ${move.removed} removed` : "";
  return `${capital(move.colour)} ${move.move}${gone}`;
}

/** What a stone on a cell would take, or nothing. */
export function effectWords(effect, colour) {
  if (!effect) return "";
  const other = colour === "black" ? "white" : "black";
  const parts = [];
  if (effect.captured.length) parts.push(`captures ${stones(effect.captured.length, other)}`);
  if (effect.lost.length) parts.push(`loses ${stones(effect.lost.length, colour)}`);
  return parts.join(", ");
}

export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/** The state of a game in a line. */
export function statusWords(game, view, thinking) {
  const result = outcome(game, view);
  if (result) {
    const name = game.name(result.seat);
    const won = name === "You" ? "You have won" : `${name} has won`;
    return `${won}, ${result.colour}${result.resigned ? ", by resignation" : ""}.`;
  }
  const seat = view.to_play.seat;
  const name = game.name(seat);
  const colour = capital(view.to_play.colour);
  if (thinking) return `${name} is thinking…`;
  const people = game.seats.every((player) => player === null);
  const whose = name === "You" ? `Your turn, ${colour}` : people ? `${colour} to play` : `${colour} to play: ${name}`;
  if (view.placed) return `${whose}: the second stone of this turn.`;
  const two = view.stones_in_turn === 2 ? ": two stones" : "";
  if (view.may_swap) return `${whose}${two}, or swap sides.`;
  return `${whose}${two}.`;
}

/** Who has won: {seat, colour, resigned}, or null while the game goes on. */
export function outcome(game, view) {
  if (view.result) return { seat: view.result.winner, colour: capital(view.result.colour), resigned: false };
  if (game.resigned === null || !game.atEnd) return null;
  const seat = 1 - game.resigned;
  return { seat, colour: view.black === seat ? "Black" : "White", resigned: true };
}
