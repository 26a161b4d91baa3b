"""Where a model comes from: the entries in its file that say so, made here for every way to write one."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from lifeline.errors import CheckpointError, ConfigError
from lifeline.model_file import OBSERVATION_KEY
from training import checkpoint
from training.config import Config, build_config, read_yaml
from training.evaluation import ANCHOR, RatingBook, rate
from training.ratings import Pair
from training.rundir import CHECKPOINTS, CONFIG_FILE, RATINGS_FILE, read_facts
from training.sessions import Stretch, read_sessions, resumptions
from training.weights_file import SUFFIX, Weights, find_weights

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

_RESUMED = "resumed"
# Said of a file and not of the network in it: written anew into the next one.
_OF_THE_FILE = (OBSERVATION_KEY, "network", "program", "precision", "half_difference")
_MAX_TEXT, _MAX_CONFIG, _MAX_RESUMED, _MAX_LINEAGE = 200, 8_000, 8_000, 38_000
_STEP = dict.fromkeys(("seed", "command", "commit", "iterations", "games", "training_seconds"), _MAX_TEXT)
_STEP[_RESUMED] = _MAX_RESUMED


@dataclass(frozen=True)
class Source:
    """A network that can be written into a file, and what is known of it.

    Attributes:
        name: what it is called, for people.
        network: its size, as JSON values; None where a checkpoint does not say.
        weights: its state dict, float32.
        entries: the metadata of a file with it.
    """

    name: str
    network: Any
    weights: Mapping[str, Tensor]
    entries: dict[str, str]


def find_source(path: Path, licence: str | None = None, note: str | None = None) -> Source:
    """The network of a checkpoint, as `checkpoint.find` takes it, or of a file of weights.

    A checkpoint is described by the run in whose directory it stands, a file by what it says of itself.

    Args:
        licence: of the model; if not given, what a file says, or this project's own.
        note: whatever else its maker wants to say; if not given, what a file says.

    Raises:
        CheckpointError: there is none, or it or the run's rating games are damaged.
        ConfigError: the run's configuration is damaged.
    """
    if path.suffix == SUFFIX:
        found = find_weights(path)
        entries = {key: value for key, value in found.entries.items() if key not in _OF_THE_FILE}
        given = {"licence": licence or entries.get("licence", LICENCE), "note": note}
        return Source(path.name, found.network, found.tensors, entries | {k: v for k, v in given.items() if v})
    saved = checkpoint.find(path)
    run = _run_of(saved.path)
    entries = describe(saved.iteration, saved.counters, licence=licence or LICENCE, note=note)
    if run is not None:
        (_, made), pairs = read_sessions(run), RatingBook(run / RATINGS_FILE).pairs
        config, facts = _config_of(run), read_facts(run)
        entries = describe(saved.iteration, saved.counters, config, pairs, licence or LICENCE, note, facts, made)
    return Source(saved.path.name, saved.manifest.get("network"), saved.weights(), entries)


def _run_of(path: Path) -> Path | None:
    """The directory of the run that a checkpoint stands in; None if it stands alone."""
    place = path.absolute().parent
    return place.parent if place.name == CHECKPOINTS and (place.parent / CONFIG_FILE).is_file() else None


def _config_of(run: Path) -> Config:
    return build_config(read_yaml(run / CONFIG_FILE), str(run / CONFIG_FILE))


def lineage(weights: Weights) -> list[dict[str, Any]]:
    """The runs behind weights that training is to begin with, the oldest first.

    Returns:
        For each run the entries of `describe` that make it again, its configuration as JSON values as it was written.
        Empty if the weights do not say by which run they were made, or not in a way that is understood.
    """
    entries: Mapping[str, Any] = weights.entries
    if not entries:
        entries = _entries_beside(weights.source)
    own = _step(entries)
    try:
        earlier = json.loads(_short(entries.get(BEGUN_WITH), _MAX_LINEAGE) or "[]")
    except (ValueError, RecursionError):
        earlier = []
    return _bounded([*(earlier if isinstance(earlier, list) else []), own]) if own else []


def _entries_beside(path: Path) -> dict[str, Any]:
    """What is known of a checkpoint from the run in whose directory it stands; nothing if that is damaged."""
    run = _run_of(path)
    if run is None:
        return {}
    try:
        found = checkpoint.load(path)
        _, made = read_sessions(run)
        return describe(found.iteration, found.counters, _config_of(run), facts=read_facts(run), made=made)
    except (CheckpointError, ConfigError):
        return {}


def _newest(resumed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest of them, as many as there is room for."""
    while len(json.dumps(resumed, separators=(",", ":"))) > _MAX_RESUMED:
        resumed = resumed[1:]
    return resumed


def _bounded(steps: Any) -> list[dict[str, Any]]:
    """The newest steps of a lineage, as many as a model's metadata have room for, with what is known.

    Args:
        steps: JSON values, of whoever wrote them.
    """
    known: list[dict[str, Any]] = []
    room = _MAX_LINEAGE
    for step in reversed(steps if isinstance(steps, list) else []):
        taken = _step(step)
        room -= len(json.dumps(taken, separators=(",", ":"))) + 2
        if not taken or room < 0:
            break
        known.insert(0, taken)
    return known


def _step(entries: Any) -> dict[str, Any]:
    """One run of a lineage; empty if its configuration is not there."""
    if not isinstance(entries, Mapping):
        return {}
    config = entries.get("config")
    if isinstance(config, str):
        try:
            config = json.loads(_short(config, _MAX_CONFIG) or "null")
        except (ValueError, RecursionError):
            return {}
    if not isinstance(config, dict):
        return {}
    told = {name: _short(entries.get(name), most) for name, most in _STEP.items()}
    return {"config": config, **{name: text for name, text in told.items() if text}}


def _short(value: Any, most: int) -> str | None:
    """A text that is short enough to be kept and shown; else None."""
    return value if isinstance(value, str) and len(value) <= most and value.isprintable() else None


def describe(
    iteration: int,
    counters: Mapping[str, Any],
    config: Config | None = None,
    pairs: Sequence[Pair] = (),
    licence: str = LICENCE,
    note: str | None = None,
    facts: Mapping[str, Any] | None = None,
    made: Sequence[Stretch] = (),
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
        made: how it went on, the oldest stretch first.

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
        made = [stretch for stretch in made if stretch.iteration < max(1, iteration)]
        # JSON is YAML: the entry, saved as a file, is what the command takes.
        first = made[0].config if made else config.model_dump(mode="json")
        entries |= {"config": json.dumps(first, separators=(",", ":")), "seed": str(config.seed)}
        entries["command"] = "lifeline train config.yaml"
        if begun.get("init_from"):
            entries["command"] += f" --init-from {Path(str(begun['init_from'])).name}"
        earlier = _bounded(begun.get(BEGUN_WITH))
        if earlier:
            entries[BEGUN_WITH] = json.dumps(earlier, separators=(",", ":"))
        commit = made[0].commit if made else begun.get("commit")
        if commit:
            entries["commit"] = str(commit)
        resumed = _newest(resumptions(made, "RUN"))
        if resumed:
            entries[_RESUMED] = json.dumps(resumed, separators=(",", ":"))
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
