"""What the exact solver says of a model while it learns: on boards small enough for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lifeline.rules import Rules
from lifeline.search.evaluator import Evaluator
from training.grading import grade, graded, opening_winners, path_of, swaps_right

# Searched are so many of the graded positions: enough to see a run's progress, and few enough to look often.
_SEARCHED = 400


def truths(evaluator: Evaluator, sizes: Iterable[Rules], simulations: int) -> dict[str, float]:
    """Shares and errors, in [0, 1], of a model on the graded positions of each size there are any of.

    Args:
        simulations: of what is searched.
    Returns:
        By name, such as `base3/keeps_win_raw`: won positions in which the move keeps the win, by the policy alone and
        by search; values of the right sign, on won and lost positions apart; how far the value is from how often it
        comes true; first turns after which the swap is decided rightly.
    """
    out: dict[str, float] = {}
    for rules in sizes:
        if rules != Rules(rules.base) or not path_of(rules.base).exists():
            continue
        every, some = graded(rules.base), graded(rules.base).sample(_SEARCHED)
        raw, searched = grade(evaluator, every), grade(evaluator, some, simulations)
        found: dict[str, float | np.floating[Any]] = {
            "keeps_win_raw": np.mean(raw.keeps_win),
            f"keeps_win_{simulations}": np.mean(searched.keeps_win),
            "sign_won_raw": np.mean(raw.right_sign[raw.won]),
            "sign_lost_raw": np.mean(raw.right_sign[~raw.won]),
            f"sign_{simulations}": np.mean(searched.right_sign),
            "calibration_error_raw": raw.calibration_error,
        }
        if opening_winners(rules.base):
            found[f"swaps_right_{simulations}"] = np.mean(swaps_right(evaluator, rules.base, simulations))
        out |= {f"base{rules.base}/{name}": float(value) for name, value in found.items()}
    return out
