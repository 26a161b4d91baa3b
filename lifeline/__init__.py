"""Lifeline: the board game, its rules at compiled speed, and neural-guided search to play it."""

from lifeline.board import Board, board
from lifeline.env import BatchEnv
from lifeline.errors import (
    CheckpointError,
    ConfigError,
    IllegalMoveError,
    LifelineError,
    ModelError,
    NotationError,
    RecordError,
    RulesError,
    RunError,
)
from lifeline.rules import Position, Rules
from lifeline.version import __version__

__all__ = [
    "BatchEnv",
    "Board",
    "CheckpointError",
    "ConfigError",
    "IllegalMoveError",
    "LifelineError",
    "ModelError",
    "NotationError",
    "Position",
    "RecordError",
    "Rules",
    "RulesError",
    "RunError",
    "__version__",
    "board",
]
