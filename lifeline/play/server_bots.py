"""The bots a server offers: models, or where there are none one that judges by random games."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lifeline.board import MAX_BASE, MIN_BASE
from lifeline.play.server_rollouts import RolloutEvaluator
from lifeline.rules import Rules
from lifeline.search.evaluator import Evaluator, OnnxEvaluator


@dataclass(frozen=True)
class Bot:
    """A bot.

    Attributes:
        id: a short name no other bot of the server has.
        description: a line for people: what it is, what it was trained on.
        bases: board sizes it was trained on; empty where that is not known.
        is_model: whether it is a trained network.
        evaluator: makes what judges positions of some rules, for one thread.
    """

    id: str
    description: str
    bases: tuple[int, ...]
    is_model: bool
    evaluator: Callable[[Rules], Evaluator]


def rollout_bot() -> Bot:
    """The bot that needs no model."""
    return Bot("rollouts", "No model: it judges positions by random games", (), False, RolloutEvaluator)


def load_bots(models: Sequence[Path]) -> tuple[Bot, ...]:
    """The bots of some models, in their order; `rollout_bot` where there are none.

    Raises:
        ModelError: one of them cannot be used.
    """
    bots: list[Bot] = []
    for path in models:
        evaluator = OnnxEvaluator(path)
        bots.append(_model_bot(_free_id(path.stem, {bot.id for bot in bots}), evaluator))
    return tuple(bots) or (rollout_bot(),)


def _model_bot(name: str, evaluator: OnnxEvaluator) -> Bot:
    metadata = evaluator.metadata
    bases = _bases(metadata.get("bases_trained", ""))
    told = [f"trained on base {', '.join(map(str, bases))}" if bases else "a model"]
    games = metadata.get("games", "")
    if games.isascii() and games.isdigit():
        told.append(f"{int(games):,} games".replace(",", " "))
    return Bot(name, "; ".join(told), bases, True, lambda rules: evaluator)


def _free_id(stem: str, taken: set[str]) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in stem)[:30] or "bot"
    numbers = (f"{plain}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (plain, *numbers) if name not in taken)


def _bases(text: str) -> tuple[int, ...]:
    """Board sizes out of metadata, whatever stands there."""
    numbers = {int(word) for word in re.findall("[0-9]+", text[:200], re.ASCII)}
    return tuple(sorted(n for n in numbers if MIN_BASE <= n <= MAX_BASE))
