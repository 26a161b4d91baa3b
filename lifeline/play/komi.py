"""Komi pie before the game: naming the komi."""

from __future__ import annotations

from dataclasses import replace

from lifeline.errors import ConfigError
from lifeline.play.engine import Engine, KomiChoice
from lifeline.rules import MAX_KOMI, Position

# Of those the model alone holds for most even, so many are searched.
_SEARCHED = 5


def name_komi(engine: Engine, most: int | None, simulations: int | None, seed: int) -> KomiChoice:
    """See `Engine.named_komi`."""
    rules = engine.rules
    if rules.opening != "komi_pie":
        raise ConfigError(f"a komi is named in komi_pie, not in {rules.opening}")
    limit = min(MAX_KOMI, rules.num_cells // 2 if most is None else most)
    starts = [Position.start(replace(rules, komi=komi)) for komi in range(limit + 1)]
    values = {k: a.value for k, a in enumerate(engine.analyse_many(starts, [seed] * len(starts), 0))}
    count = engine.settings.simulations if simulations is None else simulations
    if count:
        nearest = sorted(values, key=lambda k: (abs(values[k]), k))[:_SEARCHED]
        found = engine.analyse_many([starts[k] for k in nearest], [seed] * len(nearest), count)
        values |= {k: a.value for k, a in zip(nearest, found, strict=True)}
        komi = min(nearest, key=lambda k: (abs(values[k]), k))
    else:
        komi = min(values, key=lambda k: (abs(values[k]), k))
    return KomiChoice(komi, values[komi], values)
