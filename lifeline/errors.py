"""Every error this project raises on purpose. Front doors print the message as one line."""


class LifelineError(Exception):
    """Base of all errors below: catch it to catch any of them."""


class RulesError(LifelineError, ValueError):
    """Rules that do not exist: a base out of range, an unknown opening."""


class NotationError(LifelineError, ValueError):
    """A text that is no cell, move, position or record."""


class RecordError(NotationError):
    """A game record that cannot be read or does not hold together.

    Attributes:
        reason: what is wrong, without the place.
        file: where the record was read from, None where it was no file.
        line: 1-based, None where there is none.
        column: 1-based place in the line's text, None where there is none.
    """

    def __init__(
        self, reason: str, file: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.reason, self.file, self.line, self.column = reason, file, line, column
        place = [] if line is None else [f"line {line}" + ("" if column is None else f", column {column}")]
        super().__init__(": ".join([*([] if file is None else [file]), *place, reason]))


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


class ForfeitError(LifelineError):
    """A player that cannot go on and has lost its game: a program that crashed, hung, gave up or broke the rules.

    Attributes:
        reason: what a game record says of it: "resigned", "time", "illegal move" or "adjudicated".
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(detail)


class MissingExtraError(LifelineError, ImportError):
    """A module was imported, or a command given, without the optional packages it is made for.

    Args:
        module: what was imported or given.
        package: what it needs and is not there.
        extra: the extra of this project that brings it.
    """

    def __init__(self, module: str, package: str | None, extra: str) -> None:
        super().__init__(f"{module} needs {package}, which is not installed: pip install '.[{extra}]'")


class RequestError(LifelineError, ValueError):
    """A question to a server that has not the form it must have."""


class BusyError(LifelineError):
    """A server that has more to do than it takes on.

    Attributes:
        seconds: after which asking again is of use.
    """

    def __init__(self, message: str, seconds: int = 2) -> None:
        self.seconds = seconds
        super().__init__(message)
