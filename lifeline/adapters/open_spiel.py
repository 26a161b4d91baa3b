"""Lifeline as a game of OpenSpiel: `pyspiel.load_game("lifeline(base=4,opening=weak_pie)")` once this is imported.

OpenSpiel's players 0 and 1 are the seats, who exchange colours by a swap and remain who they are. One action is one
ply: in a first turn of two stones the same player acts twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.errors import ConfigError, MissingExtraError
from lifeline.game_record import MAX_PLIES
from lifeline.notation import action_text
from lifeline.observation import NUM_PLANES
from lifeline.render import board_text
from lifeline.rules import Position, Rules

try:
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame
except ModuleNotFoundError as error:
    raise MissingExtraError("lifeline.adapters.open_spiel", error.name, "openspiel") from None

_GAME_TYPE = pyspiel.GameType(
    short_name="lifeline",
    long_name="Lifeline",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={"base": 3, "opening": "strong_pie", "komi": 0, "adjacent_setup": "allowed"},
)


class _SharedEnv(BatchEnv):
    """The kernels of a game, shared by all its states, each of which puts itself in before it asks."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules, 1)

    def __deepcopy__(self, memo: dict[int, Any]) -> _SharedEnv:
        return self  # OpenSpiel clones a state by deep copies of its attributes

    def at(self, packed: npt.NDArray[np.uint64]) -> _SharedEnv:
        """The same, holding a state."""
        self.scatter(None, packed)
        return self


class LifelineGame(pyspiel.Game):
    """The game under given rules.

    Args:
        params: `base`, `opening`, `komi` and `adjacent_setup`, as those of `Rules`.

    Attributes:
        rules: what is played.

    Raises:
        RulesError: no such rules.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        given = _GAME_TYPE.parameter_specification | (params or {})
        self.rules = Rules(**given)
        info = pyspiel.GameInfo(
            num_distinct_actions=self.rules.num_actions,
            max_chance_outcomes=0,
            num_players=2,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            # No bound is proven; games end near N plies, and no record may be longer than this.
            max_game_length=MAX_PLIES,
        )
        super().__init__(_GAME_TYPE, info, given)
        self._env = _SharedEnv(self.rules)

    def __reduce__(self) -> tuple[Any, ...]:
        return pyspiel.load_game, (str(self),)  # what OpenSpiel itself unpickles has none of the attributes

    def new_initial_state(self) -> LifelineState:
        """The empty board."""
        return LifelineState(self, self._env)

    def make_py_observer(self, iig_obs_type: Any = None, params: dict[str, Any] | None = None) -> Any:
        """What OpenSpiel observes states by.

        Raises:
            ConfigError: observations have no parameters.
        """
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return PlanesObserver(self.rules, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class LifelineState(pyspiel.State):
    """A position of a game; not to be used by two threads at once, nor beside another state of the same game object."""

    def __init__(self, game: LifelineGame, env: _SharedEnv) -> None:
        super().__init__(game)
        self._env = env
        env.reset()
        self._last: int | None = None
        self._keep()

    def _keep(self) -> None:
        """Take over what the environment holds. OpenSpiel asks whose turn it is several times for each action."""
        self._packed = self._env.gather()
        self._outcome = float(self._env.outcome[0])
        self._player = int(pyspiel.PlayerId.TERMINAL) if self._env.terminated[0] else int(self._env.to_play[0])

    @property
    def position(self) -> Position:
        """The same as a position of rules.py."""
        return self._env.at(self._packed).position(0)

    @property
    def planes(self) -> npt.NDArray[np.float32]:
        """float32 [C, H, W], the planes of observation.py; valid until another state of this game is asked."""
        planes: npt.NDArray[np.float32] = self._env.at(self._packed).observation[0]
        return planes

    def current_player(self) -> int:
        """The seat to move, or TERMINAL."""
        return self._player

    def _legal_actions(self, player: int) -> list[int]:
        legal: list[int] = np.flatnonzero(self._env.at(self._packed).legal_action_mask[0]).tolist()
        return legal

    def _apply_action(self, action: int) -> None:
        """Play one ply.

        Raises:
            IllegalMoveError: the rules forbid it; the state is as it was.
        """
        self._env.at(self._packed).step(np.array([action]))
        self._last = action
        self._keep()

    def _action_to_string(self, player: int, action: int) -> str:
        return action_text(action, self._env.rules.board)

    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return self._outcome != 0

    def returns(self) -> list[float]:
        """1 for the winner and -1 for the loser; zeros while the game runs."""
        return [self._outcome, -self._outcome]

    def __str__(self) -> str:
        return board_text(self.position, last=self._last)


class PlanesObserver:
    """What OpenSpiel calls an observer: the planes of observation.py, from the side of the colour to place.

    Attributes:
        tensor: float32 [C H W].
        dict: `planes`: the same as [C, H, W].

    Raises:
        ConfigError: there are parameters.
    """

    def __init__(self, rules: Rules, params: dict[str, Any] | None) -> None:
        if params:
            raise ConfigError(f"observations of lifeline have no parameters, not {', '.join(map(str, params))}")
        shape = (NUM_PLANES, *rules.board.grid_shape)
        self.tensor = np.zeros(int(np.prod(shape)), np.float32)
        self.dict = {"planes": self.tensor.reshape(shape)}

    def set_from(self, state: LifelineState, player: int) -> None:
        """Fill the tensor; it is the same for both players."""
        self.dict["planes"][...] = state.planes

    def string_from(self, state: LifelineState, player: int) -> str:
        """The position as text; it is the same for both players."""
        return state.position.text()


pyspiel.register_game(_GAME_TYPE, LifelineGame)
