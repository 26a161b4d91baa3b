"""Who plays in a tournament: players by their texts, as values that travel to where they play."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lifeline.errors import ConfigError, ModelError
from lifeline.play.gtp_player import GtpPlayer
from lifeline.play.levels import level_of
from lifeline.play.players import PLAYER_FORMS, Budget, NetworkPlayer, Player, make_player
from lifeline.rules import Rules
from lifeline.search.evaluator import OnnxEvaluator
from training import checkpoint
from training.export import export_onnx, network_config_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:@-]{0,63}")
_GIVEN_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.+:-]{0,63})=(.*)", re.DOTALL)
_GIVEN_BUDGET = re.compile(r"(.*)@([0-9]{1,7})(\.[0-9]{1,4})?(s?)(?:/(gumbel|puct))?(/alone)?", re.DOTALL)
_GIVEN_LEVEL = re.compile(r"(.*)(@level)-?([a-z0-9]{1,20})", re.DOTALL)
# Folders whose name says nothing of the model in them.
_COMMON = ("checkpoints", "models", "runs", "")

ENTRANT_HELP = (
    f"{PLAYER_FORMS}; a checkpoint or a run's folder. NAME=... names it, ...@256 and ...@0.5s give its budget, "
    "...@level3 its level"
)


@dataclass(frozen=True)
class Entrant:
    """A player of a tournament, before it sits down.

    Attributes:
        name: in all tables.
        text: what it was given as.
        budget: of each move.
        model: an exported model; None for what is no model.
    """

    name: str
    text: str
    budget: Budget
    model: bytes | None = None

    @property
    def digest(self) -> str | None:
        """SHA-256 of the model, hexadecimal."""
        return None if self.model is None else hashlib.sha256(self.model).hexdigest()

    @property
    def is_alone(self) -> bool:
        """Whether each of its games is best played by itself: it is a program, thinks by the clock, or one by one."""
        return self.text.startswith("gtp:") or self.text == "solver" or self.budget.seconds is not None

    @property
    def is_settled(self) -> bool:
        """Whether it plays the same move every time in the same position, whatever the key."""
        return self.model is not None and self.budget.seconds is None and level_of(self.budget.level).is_full

    def player(self, rules: Rules, threads: int = 1) -> Player:
        """The player itself.

        Raises:
            ConfigError, ModelError: it cannot play.
        """
        if self.model is not None:
            return NetworkPlayer(rules, OnnxEvaluator(self.model, threads), self.budget, self.name)
        return make_player(self.text, rules, self.budget, threads)

    def check(self, rules: Rules) -> None:
        """See that a program can be started and knows these rules; of others that is known.

        Raises:
            ConfigError: it cannot, or does not.
        """
        if self.text.startswith("gtp:"):
            with GtpPlayer(rules, self.text.removeprefix("gtp:"), self.budget) as program:
                program.check()

    def facts(self) -> dict[str, Any]:
        """What a record says of it beside its name."""
        budget = {"simulations": self.budget.simulations} if self.budget.seconds is None else {}
        timed = {} if self.budget.seconds is None else {"seconds_per_move": self.budget.seconds}
        model = {} if self.model is None else {"model": self.digest}
        if self.model is None:
            return {"player": self.text, **timed}
        if not level_of(self.budget.level).is_full:
            return {"player": self.text, "level": self.budget.level, "search": self.budget.search, **model}
        alone = {} if self.budget.solver else {"solver": False}
        return {"player": self.text, **budget, **timed, "search": self.budget.search, **alone, **model}


def parse_entrant(text: str, budget: Budget) -> Entrant:
    """An entrant by its text, `[NAME=]PLAYER[@SIMULATIONS|@SECONDSs][/SEARCH][/alone]` or
    `[NAME=]PLAYER@levelLEVEL`.

    Models are read, checkpoints exported.

    Args:
        budget: where the text gives none.

    Raises:
        ConfigError: no such player or budget.
        ModelError, CheckpointError: a model or checkpoint cannot be used.
    """
    given = _GIVEN_NAME.fullmatch(text)
    name, rest = (given[1], given[2]) if given else ("", text)
    limited = _GIVEN_BUDGET.fullmatch(rest)
    suffix = ""
    if limited:
        rest, suffix = limited[1], rest[len(limited[1]) :]
        number = limited[2] + (limited[3] or "")
        if limited[3] and not limited[4]:
            raise ConfigError(f"simulations are a whole number, seconds end in s: not {suffix} in {text[:80]!r}")
        chosen = limited[5] or budget.search
        helped = budget.solver and not limited[6]
        amount = {"seconds": float(number)} if limited[4] else {"simulations": int(number)}
        budget = Budget(**amount, search=chosen, solver=helped)
    weak = None if limited else _GIVEN_LEVEL.fullmatch(rest)
    if weak:
        rest, suffix = weak[1], weak[2] + weak[3]
        budget = replace(budget, level=level_of(weak[3]).name)
    label, model = _named(rest)
    if weak and model is None:
        raise ConfigError(f"levels are those of a model: {suffix} says nothing to {rest[:60]!r}")
    if limited and model is None and (limited[5] or limited[6] or not limited[4]):
        what = "simulations, search and solver are those of a model"
        raise ConfigError(f"{what}: {suffix} says nothing to {rest[:60]!r}")
    entrant = Entrant(name or label + suffix.replace("/", "-"), rest, budget, model)
    if not _NAME.fullmatch(entrant.name):
        raise ConfigError(f"a player's name has up to 64 letters, digits and _.+:@-, not {entrant.name[:80]!r}")
    return entrant


def _named(text: str) -> tuple[str, bytes | None]:
    """A name for what plays, and its model if it is one."""
    if text.startswith("gtp:"):
        try:
            words = shlex.split(text.removeprefix("gtp:"))
        except ValueError as error:
            raise ConfigError(f"not a command line ({error}): {text[:80]!r}") from None
        if not words:
            raise ConfigError("gtp: needs the command line of a program")
        return _plain(Path(words[0]).name), None
    path = Path(text)
    if text.endswith(".onnx"):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
        OnnxEvaluator(path)  # refuses what is no model, and names the file
        folder = path.resolve().parent.name
        return _plain(folder if path.stem == "bot" and folder not in _COMMON else path.stem), data
    if path.is_dir():
        return _exported(path)
    make_player(text, Rules(3))  # refuses what is no player
    return text, None


def _exported(path: Path) -> tuple[str, bytes]:
    found = checkpoint.find(path)
    config = network_config_of(json.dumps(found.manifest.get("network")))
    folders = [p for p in found.path.resolve().parts if p not in _COMMON]
    label = "-".join([*folders[-2:-1], f"{found.iteration}"]) if path != found.path else found.path.name
    return _plain(label), export_onnx(config, found.weights())


def _plain(label: str) -> str:
    """A label with what no name can have left out."""
    return re.sub(r"[^A-Za-z0-9_.+:-]+", "-", label).strip("-.:+_")[:48] or "player"


def parse_entrants(texts: Sequence[str], budget: Budget) -> list[Entrant]:
    """Entrants by their texts, all with names of their own; see `parse_entrant`.

    Raises:
        ConfigError: fewer than two, or a name comes twice and was given so.
    """
    entrants = [parse_entrant(text, budget) for text in texts]
    if len(entrants) < 2:
        raise ConfigError("a tournament needs two players at least")
    taken: dict[str, int] = {}
    out = []
    for entrant, text in zip(entrants, texts, strict=True):
        count = taken[entrant.name] = taken.get(entrant.name, 0) + 1
        if count > 1 and _GIVEN_NAME.fullmatch(text):
            raise ConfigError(f"two players are called {entrant.name}; give them names of their own: NAME=PLAYER")
        out.append(entrant if count == 1 else replace(entrant, name=f"{entrant.name}.{count}"))
    if len({e.name for e in out}) < len(out):
        raise ConfigError("two players have the same name; give them names of their own: NAME=PLAYER")
    return out
