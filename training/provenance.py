"""Where a model comes from: the entries in its file that say so, made here for every way to write one."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lifeline.errors import CheckpointError
from training import checkpoint
from training.checkpoint import Checkpoint
from training.config import Config, build_config, read_yaml
from training.evaluation import ANCHOR, RatingBook, rate
from training.ratings import Pair
from training.rundir import CHECKPOINTS, CONFIG_FILE, RATINGS_FILE, read_facts

LICENCE = "MIT"
"""Of this project, and of its models unless their maker says otherwise."""

_COUNTED = {
    "games": "games",
    "samples": "samples",
    "samples_used": "samples_used",
    "learner_steps": "learner_steps",
    "seconds": "training_seconds",
}
_MODEL = "iteration-"


@dataclass(frozen=True)
class Source:
    """A checkpoint and what is known of its run.

    Attributes:
        checkpoint: the checkpoint itself.
        config: of its run; None for a checkpoint that stands alone.
        pairs: the run's rating games.
        facts: what its directory says of how it was begun; see `rundir.create`.
    """

    checkpoint: Checkpoint
    config: Config | None
    pairs: Sequence[Pair]
    facts: Mapping[str, Any]


def find_source(path: Path) -> Source:
    """The checkpoint of a path, as `checkpoint.find` takes it, with the run in whose directory it stands.

    Raises:
        CheckpointError: there is none, or it or the run's rating games are damaged.
        ConfigError: the run's configuration is damaged.
    """
    found = checkpoint.find(path)
    place = found.path.absolute().parent
    run = place.parent
    if place.name != CHECKPOINTS or not (run / CONFIG_FILE).is_file():
        return Source(found, None, (), {})
    config = build_config(read_yaml(run / CONFIG_FILE), str(run / CONFIG_FILE))
    return Source(found, config, RatingBook(run / RATINGS_FILE).pairs, read_facts(run))


def describe(
    iteration: int,
    counters: Mapping[str, Any],
    config: Config | None = None,
    pairs: Sequence[Pair] = (),
    licence: str = LICENCE,
    note: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """The entries that say where weights come from; what is not known is left out.

    Args:
        iteration: iterations of training behind them.
        counters: a checkpoint's.
        config: of the run.
        pairs: its rating games; of the models that played them the newest one not newer than the weights is named.
        licence: a name, or a text.
        note: whatever else its maker wants to say.
        facts: how the run was begun; see `rundir.read_facts`.

    Raises:
        CheckpointError: a counter is no number.
    """
    entries = {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "licence": licence}
    if note:
        entries["note"] = note
    entries["iterations"] = str(iteration)
    for name, entry in _COUNTED.items():
        if name in counters:
            entries[entry] = _number(name, counters[name])
    if "device" in counters:
        entries["learner_device"] = str(counters["device"])
    if config is not None:
        game, begun = config.game, facts or {}
        bases = ",".join(str(rules.base) for rules in game.sizes())
        entries |= {"bases_trained": bases, "opening_trained": game.opening}
        # JSON is YAML: the entry, saved as a file, is what the command takes.
        entries |= {"config": config.model_dump_json(), "seed": str(config.seed)}
        entries["command"] = "lifeline train config.yaml"
        if begun.get("init_from"):
            entries["command"] += f" --init-from {Path(str(begun['init_from'])).name}"
        for name in ("commit", "sessions"):
            if begun.get(name):
                entries[name] = str(begun[name])
        if begun.get("versions"):
            entries["versions"] = json.dumps(begun["versions"])
        if game.opening != "strong_pie":
            entries["adjacent_setup_trained"] = game.adjacent_setup
        if game.opening == "komi_pie":
            entries["komi_trained"] = str(game.komi)
        rating = _rating(iteration, config, pairs)
        if rating:
            entries["rating"] = rating
    return entries


def _number(name: str, value: Any) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise CheckpointError(f"the checkpoint is damaged: its counter {name} is no number but {str(value)[:40]!r}")
    return f"{value:.0f}"


def _rating(iteration: int, config: Config, pairs: Sequence[Pair]) -> str | None:
    """The rating of the newest model so far that has one, as JSON."""
    names = {name for p in pairs for name in (p.first, p.second) if name.startswith(_MODEL)}
    newest = max((n for n in names if n <= f"{_MODEL}{iteration:08d}"), default=None)
    ratings = rate(pairs, config.seed) if newest else None
    if ratings is None or newest is None:
        return None
    rating = ratings.players[newest]
    told = {
        "model": newest,
        "elo": round(rating.elo),
        "interval_95": [round(rating.low), round(rating.high)],
        "games": rating.games,
        "simulations": config.evaluation.num_simulations,
        "scale": f"Elo among the players of this run, {ANCHOR} = 0",
    }
    return json.dumps(told)
