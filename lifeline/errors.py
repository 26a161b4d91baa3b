"""Every error this project raises on purpose. Front doors print the message as one line."""


class LifelineError(Exception):
    """Base of all errors below: catch it to catch any of them."""


class RulesError(LifelineError, ValueError):
    """Rules that do not exist: a base out of range, an unknown opening."""


class NotationError(LifelineError, ValueError):
    """A text that is no cell, move, position or record."""


class IllegalMoveError(LifelineError, ValueError):
    """A move the rules forbid; the message carries the position and the move."""


class ConfigError(LifelineError, ValueError):
    """A run configuration with an unknown key, a value out of range or a violated coupling."""


class CheckpointError(LifelineError):
    """A checkpoint that is missing, damaged or of another version."""


class ModelError(LifelineError):
    """An exported model that cannot be used: missing, damaged, foreign or of another version."""


class RunError(LifelineError):
    """A training run that cannot start, go on or be written."""
