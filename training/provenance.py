"""Where a model comes from: the entries in its file that say so, made here for every way to write one."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lifeline.errors import CheckpointError, ConfigError
from training import checkpoint
from training.checkpoint import Checkpoint
from training.config import Config, build_config, read_yaml
from training.evaluation import ANCHOR, RatingBook, rate
from training.ratings import Pair
from training.rundir import CHECKPOINTS, CONFIG_FILE, RATINGS_FILE, read_facts
from training.weights_file import Weights

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

BEGUN_WITH = "begun_with"
"""The entry, and the fact of a run, that tells of earlier runs whose weights it began with."""

_STEP = ("config", "seed", "command", "commit", "sessions", "iterations", "games", "training_seconds")
_MAX_STEPS = 12
_MAX_TEXT = 200


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


def lineage(weights: Weights) -> list[dict[str, Any]]:
    """The runs behind weights that training is to begin with, the oldest first.

    Returns:
        For each run the entries of `describe` that make it again, its configuration as JSON values. What the
        weights do not say, or say in a way that is not understood, is left out.
    Raises:
        CheckpointError, ConfigError: see `find_source`.
    """
    entries = weights.entries
    if not entries:
        source = find_source(weights.source)
        saved = source.checkpoint
        entries = describe(saved.iteration, saved.counters, source.config, facts=source.facts)
    steps = []
    with contextlib.suppress(ValueError, TypeError, AttributeError, KeyError, RecursionError, ConfigError):
        steps += [_step(step) for step in json.loads(entries.get(BEGUN_WITH, "[]"))]
        if "config" in entries:
            steps.append(_step({**entries, "config": json.loads(entries["config"])}))
    return steps[-_MAX_STEPS:]


def _step(entries: Mapping[str, Any]) -> dict[str, Any]:
    """One run of a lineage, with nothing in it but what is known here and short."""
    step: dict[str, Any] = {name: ascii(entries[name])[1:-1][:_MAX_TEXT] for name in _STEP[1:] if name in entries}
    config = build_config(entries["config"], "the weights' origin")
    return {"config": config.model_dump(mode="json"), **step}


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
        if begun.get(BEGUN_WITH):
            entries[BEGUN_WITH] = json.dumps(begun[BEGUN_WITH], separators=(",", ":"))
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
