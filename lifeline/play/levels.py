"""Levels of strength: how a bot is weakened so that it plays less well and still sensibly.

A weak player is one that looks less far and is less sure what is best: each level has a number of simulations, and
takes a move with a probability that falls with how much worse than the best one it looks. So it prefers, as people do,
the mistakes that are hard to see; what search has shown to lose outright it plays only where all levels would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lifeline.errors import ConfigError

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Level:
    """How well a bot plays.

    Attributes:
        number: 1 the weakest.
        name: what it is called.
        simulations: of each move; None = as many as the bot is given, and always the best move.
        doubt: by how much worse a move looks, in values from -1 to 1, for it to be e times less likely; > 0.
        instinct: power of the network's own probability that a move's likelihood is multiplied with, in [0, 1].
        margin: moves that look worse than the best one by more than this are not played, in values; 2 = any are.
    """

    number: int
    name: str
    simulations: int | None = None
    doubt: float = 0.0
    instinct: float = 1.0
    margin: float = 2.0

    @property
    def is_full(self) -> bool:
        """Whether nothing is held back."""
        return self.simulations is None


LEVELS = (
    Level(1, "beginner", 2, 2.0, 0.1),
    Level(2, "novice", 4, 1.5, 0.15),
    Level(3, "casual", 4, 1.1, 0.25),
    Level(4, "hobby", 6, 0.8, 0.38, 1.6),
    Level(5, "club", 8, 0.66, 0.45, 1.5),
    Level(6, "strong", 10, 0.43, 0.65, 1.2),
    Level(7, "skilled", 16, 0.28, 0.8, 0.9),
    Level(8, "expert", 24, 0.14, 0.9, 0.6),
    Level(9, "master", 36, 0.07, 1.0, 0.4),
    Level(10, "full"),
)
FULL = LEVELS[-1]


def level_of(text: str) -> Level:
    """A level by its number or name.

    Raises:
        ConfigError: there is no such level.
    """
    for level in LEVELS:
        if text in (level.name, str(level.number)):
            return level
    names = ", ".join(f"{level.number} {level.name}" for level in LEVELS)
    raise ConfigError(f"a level is one of {names}, not {text[:40]!r}")


def weakened_choice(level: Level, prior: FloatArray, values: FloatArray, best: int, key: np.uint64) -> int:
    """The action a level takes, the same each time for the same key.

    Args:
        level: not the full one.
        prior: float32 [A], the network's probabilities, 0 where illegal.
        values: float32 [A] in [-1, 1], for the player to move.
        best: the best action, which is always a candidate.
        key: of the position and the game.
    """
    allowed = (prior > 0) & (values >= values[best] - level.margin)
    allowed[best] = True
    scores = values.astype(np.float64) / level.doubt
    scores[allowed] += level.instinct * np.log(np.maximum(prior[allowed], 1e-12))
    scores += np.random.default_rng(key).gumbel(size=len(scores))  # the greatest: a draw by the exponentials
    return int(np.where(allowed, scores, -np.inf).argmax())
