"""A game given by a table, with the interface of `BatchEnv`, and an evaluator that reads the table's values."""

import numpy as np


class TableEnv:
    """From each state each legal action leads to a later one; see scripts/make_gumbel_golden.py."""

    num_global_actions = 0
    grid_shape = (1, 1)

    def __init__(self, game, batch_size=1):
        self.game = game
        self.child, self.seat, self.won = (np.array(game[k]) for k in ("child", "seat", "won"))
        self.num_actions, self.batch_size = self.child.shape[1], batch_size
        self.action_to_grid = np.zeros(self.num_actions, np.int64)
        self._rows = np.zeros((batch_size, 1), np.int64)

    @property
    def legal_action_mask(self):
        return self.child[self._rows[:, 0]] >= 0

    @property
    def to_play(self):
        return self.seat[self._rows[:, 0]].astype(np.int8)

    @property
    def terminated(self):
        return self.won[self._rows[:, 0]] >= 0

    @property
    def outcome(self):
        return np.array([0, 1, -1])[self.won[self._rows[:, 0]] + 1].astype(np.int8)

    @property
    def observation(self):
        return self._rows[:, :, None, None].astype(np.float32)

    def step(self, actions):
        running = ~self.terminated
        after = self.child[self._rows[:, 0], actions]
        assert (after[running] >= 0).all()
        self._rows[running, 0] = after[running]

    def gather(self, rows=None):
        return self._rows.copy() if rows is None else self._rows[rows]

    def scatter(self, rows, states):
        self._rows[slice(None) if rows is None else rows] = states


class TableEvaluator:
    """What the table says of each state."""

    def __init__(self, game):
        self.logits, self.values = (np.array(game[k], np.float32) for k in ("logits", "values"))

    def evaluate(self, leaves):
        states = leaves.gather()[:, 0]
        return self.logits[states], self.values[states]
