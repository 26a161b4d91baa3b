"""Lifeline as a PettingZoo AEC environment.

The agents are the players: `seat_0`, who begins as Black, and `seat_1`. One step is one ply, so the agent selected
stays the same between the two stones of a first turn, and changes across a swap, which exchanges their colours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.errors import ConfigError, MissingExtraError
from lifeline.observation import NUM_PLANES
from lifeline.render import board_text
from lifeline.rules import MAX_KOMI, Position, Rules

try:
    from gymnasium import spaces
    from pettingzoo import AECEnv
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper
except ModuleNotFoundError as error:
    raise MissingExtraError("lifeline.adapters.pettingzoo", error.name, "pettingzoo") from None

AGENTS = ("seat_0", "seat_1")


class LifelineEnv(AECEnv[str, dict[str, npt.NDArray[Any]], int]):
    """One game. Nothing in it is random: the seed of `reset` changes nothing.

    An observation is a dictionary of
    `observation`: float32 [C, H, W], the planes of observation.py, as the colour to place sees them, whoever asks; and
    `action_mask`: int8 [A], 1 = legal; all 0 for the agent that is not to act, and at the end.

    The winner's reward is 1 and the loser's -1, at the end; before that both are 0.

    Args:
        rules: what is played.
        render_mode: "ansi": `render` gives the board as text; None: there is nothing to render.

    Raises:
        ConfigError: no such render mode.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  what PettingZoo looks for, and where
        "name": "lifeline_v0",
        "render_modes": ["ansi"],
        "is_parallelizable": False,
    }

    def __init__(self, rules: Rules, render_mode: str | None = None) -> None:
        super().__init__()
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"the render mode is ansi or None, not {render_mode!r}")
        self.rules, self.render_mode = rules, render_mode
        self.possible_agents = list(AGENTS)
        self._env = BatchEnv(rules, 1)
        self._last: int | None = None
        # No plane counts anything but stones, groups and points of komi.
        planes = spaces.Box(0.0, max(rules.num_cells, MAX_KOMI), (NUM_PLANES, *self._env.grid_shape), np.float32)
        mask = spaces.Box(0, 1, (rules.num_actions,), np.int8)
        self._observation_spaces = {a: spaces.Dict({"observation": planes, "action_mask": mask}) for a in AGENTS}
        self._action_spaces = {a: spaces.Discrete(rules.num_actions) for a in AGENTS}

    def observation_space(self, agent: str) -> spaces.Dict:
        """The space of an agent's observations; both have the same."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The actions 0..A-1: the cells, the swap, a point of komi."""
        return self._action_spaces[agent]

    @property
    def position(self) -> Position:
        """The position of the game."""
        return self._env.position(0)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a new game. Neither argument is looked at."""
        self._env.reset()
        self._last = None
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in AGENTS}
        self.agent_selection = AGENTS[self._env.to_play[0]]

    def observe(self, agent: str) -> dict[str, npt.NDArray[Any]]:
        """What an agent sees; see the class."""
        mask = self._env.legal_action_mask[0].astype(np.int8)
        if agent != AGENTS[self._env.to_play[0]]:
            mask[:] = 0
        return {"observation": self._env.observation[0].copy(), "action_mask": mask}

    def step(self, action: int | None) -> None:
        """Play one ply for the agent selected; `None` once the game is over.

        Raises:
            IllegalMoveError: the rules forbid it; the game is as it was.
        """
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self._env.step(np.array([action]))
        self._last = int(action)  # type: ignore[arg-type]  # None has been refused
        self._cumulative_rewards[self.agent_selection] = 0.0
        outcome = float(self._env.outcome[0])
        self.rewards = dict(zip(AGENTS, (outcome, -outcome), strict=True))
        self.terminations = dict.fromkeys(AGENTS, bool(self._env.terminated[0]))
        self.agent_selection = AGENTS[self._env.to_play[0]]
        self._accumulate_rewards()

    def render(self) -> str | None:
        """The board as text, the last stone in brackets, and whose turn it is; None without a render mode."""
        return None if self.render_mode is None else board_text(self.position, last=self._last)

    def close(self) -> None:
        """There is nothing to release."""


def env(
    base: int = 3,
    opening: str = "strong_pie",
    komi: int = 0,
    adjacent_setup: str = "allowed",
    render_mode: str | None = None,
) -> OrderEnforcingWrapper:
    """The environment as PettingZoo's tools make one: by keywords, and wrapped so that it must be `reset` first.

    Raises:
        RulesError: no such rules.
        ConfigError: no such render mode.
    """
    return OrderEnforcingWrapper(LifelineEnv(Rules(base, opening, komi, adjacent_setup), render_mode))
