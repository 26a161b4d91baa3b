"""When a player gives a game up: after several own moves in a row that look lost."""

from __future__ import annotations

from lifeline.rules import Position


class Resigning:
    """Watches the moves of one game, of both seats; moves that are taken back are forgotten.

    Args:
        below: a move whose value is below this looks lost; -1 = no player ever gives up.
        moves: how many in a row it takes, at least 1.
    """

    def __init__(self, below: float, moves: int) -> None:
        self._below, self._moves = below, moves
        self._seen: dict[int, dict[tuple[int, int], bool]] = {0: {}, 1: {}}

    def judge(self, position: Position, value: float) -> bool:
        """Whether the player to move gives up.

        Args:
            position: running, of the game watched.
            value: for the player to move, in [-1, 1].
        """
        if self._below <= -1:
            return False
        now = (position.turn, position.placed)
        seen = {ply: lost for ply, lost in self._seen[position.to_play].items() if ply < now}
        seen[now] = value < self._below
        self._seen[position.to_play] = seen
        last = list(seen.values())[-self._moves :]
        return len(last) == self._moves and all(last)
