"""BatchEnv: B games of one set of rules stepped together, one action each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.errors import IllegalMoveError, RulesError
from lifeline.notation import action_text
from lifeline.observation import NUM_PLANES, encode_planes, grid_maps
from lifeline.rules import Position, Rules

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
States = npt.NDArray[np.uint64]


class BatchEnv:
    """B games stepped together. What a search or a worker knows of the game is this interface and no more.

    A finished game keeps its last state, and steps on it change nothing, until `reset`. The arrays handed out are
    owned by the environment: they are valid until the next `step`, `reset` or `scatter`, and must not be written to.

    Args:
        rules: what is played.
        batch_size: B, at least 1.

    Raises:
        RulesError: batch_size below 1.
    """

    num_global_actions = 2

    def __init__(self, rules: Rules, batch_size: int) -> None:
        if batch_size < 1:
            raise RulesError(f"batch_size must be at least 1, not {batch_size}")
        self.rules = rules
        self.batch_size = batch_size
        self.num_actions = rules.num_actions
        self.grid_shape = rules.board.grid_shape
        self._spec = kernels.spec_of(rules)
        self._work = np.zeros(kernels.work_size(len(self._spec.words)), np.uint64)
        self._start = kernels.encode_position(Position.start(rules))
        self._states = np.tile(self._start, (batch_size, 1))
        self._mask = np.zeros((batch_size, self.num_actions), np.bool_)
        self._planes = np.zeros((batch_size, NUM_PLANES, self.grid_shape[0] * self.grid_shape[1]), np.float32)
        self._first_map = np.zeros(batch_size, np.int64)
        self._to_play = np.zeros(batch_size, np.int8)
        self._terminated = np.zeros(batch_size, np.bool_)
        self._outcome = np.zeros(batch_size, np.int8)
        self._changed()

    def _changed(self) -> None:
        self._mask_is_fresh = self._planes_are_fresh = False
        kernels.status_batch(self._states, self._to_play, self._terminated, self._outcome)

    @property
    def action_to_grid(self) -> IntArray:
        """int64 [A]: index of each action in the flattened H x W grid, -1 for the global ones."""
        return np.concatenate([self.rules.board.cell_to_grid, np.full(self.num_global_actions, -1)])

    @property
    def symmetries(self) -> IntArray:
        """int64 [12, A]: where each symmetry of the board takes each action."""
        cells = self.rules.board.symmetries
        actions = np.arange(self.rules.num_cells, self.num_actions)
        return np.concatenate([cells, np.tile(actions, (len(cells), 1))], axis=1)

    def reset(
        self, rows: IntArray | BoolArray | Sequence[int] | None = None, positions: Sequence[Position] | None = None
    ) -> None:
        """Start games anew.

        Args:
            rows: which games, by number or by mask; all when None.
            positions: one for each of these games; the start of the game when None.

        Raises:
            RulesError: as many positions as rows are needed, of these rules.
        """
        index = np.arange(self.batch_size) if rows is None else np.asarray(rows)
        if index.dtype == np.bool_:
            index = np.flatnonzero(index)
        states = np.tile(self._start, (len(index), 1))
        if positions is not None:
            if len(positions) != len(index):
                raise RulesError(f"{len(positions)} positions for {len(index)} games")
            for row, position in enumerate(positions):
                if position.rules != self.rules:
                    raise RulesError(f"a position of {position.rules} in an environment of {self.rules}")
                states[row] = kernels.encode_position(position)
        self._states[index.astype(np.int64)] = states
        self._changed()

    def step(self, actions: npt.NDArray[np.integer]) -> None:
        """Play one action in each running game; entries of finished games are ignored.

        Args:
            actions: integers [B].

        Raises:
            IllegalMoveError: an action is illegal; no game has been changed then.
            RulesError: not one whole number for each game.
        """
        actions = np.asarray(actions)
        if actions.shape != (self.batch_size,) or actions.dtype.kind not in "iu":
            raise RulesError(
                f"{self.batch_size} actions are needed as whole numbers, not {actions.dtype} of shape {actions.shape}"
            )
        actions = np.ascontiguousarray(actions, np.int64)
        bad = kernels.first_illegal(self._states, actions, self._work, self._spec)
        if bad >= 0:
            action, text = int(actions[bad]), self.position(bad).text()
            known = 0 <= action < self.num_actions
            move = action_text(action, self.rules.board) if known else f"action {action}"
            raise IllegalMoveError(f"illegal move in game {bad}: {move} in {text}")
        kernels.step_batch(self._states, actions, self._work, self._spec)
        self._changed()

    def step_random(self, plies: npt.NDArray[np.int64], stream: States) -> None:
        """Play plies[b] uniformly random legal actions in each game, fewer where it ends before.

        Args:
            plies: int64 [B].
            stream: uint64 [1], the random stream, updated in place.
        """
        kernels.random_plies(self._states, plies, stream, self._work, self._spec)
        self._changed()

    @property
    def legal_action_mask(self) -> BoolArray:
        """bool [B, A], True = legal; all False when a game is over."""
        if not self._mask_is_fresh:
            kernels.legal_batch(self._states, self._mask, self._work, self._spec)
            self._mask_is_fresh = True
        return self._mask

    @property
    def to_play(self) -> npt.NDArray[np.int8]:
        """int8 [B], the seat to move: 0 or 1."""
        return self._to_play

    @property
    def terminated(self) -> BoolArray:
        """bool [B], True when a game is over."""
        return self._terminated

    @property
    def outcome(self) -> npt.NDArray[np.int8]:
        """int8 [B]: +1 seat 0 has won, -1 seat 1 has, 0 the game runs."""
        return self._outcome

    @property
    def observation(self) -> npt.NDArray[np.float32]:
        """float32 [B, C, H, W]: the planes of observation.py."""
        if not self._planes_are_fresh:
            maps = grid_maps(self.rules.board)
            encode_planes(self._states, maps, self._first_map, self._planes, self._work, self._spec)
            self._planes_are_fresh = True
        return self._planes.reshape(self.batch_size, NUM_PLANES, *self.grid_shape)

    def gather(self, rows: IntArray | None = None) -> States:
        """A copy of the states of some games (all when None), first axis the games; opaque but for that."""
        return self._states.copy() if rows is None else self._states[rows]

    def scatter(self, rows: IntArray | None, states: States) -> None:
        """Put states from `gather` into some games (all when None)."""
        if rows is None:
            self._states[...] = states
        else:
            self._states[rows] = states
        self._changed()

    def position(self, row: int) -> Position:
        """The position of one game."""
        return kernels.decode_state(self._states[row], self.rules)
