"""What games are made with: what judges positions by weights that the learner has published."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lifeline.search.evaluator import Evaluator
from training.cell_evaluator import CellEvaluator
from training.config import Config
from training.devices import number_type
from training.torch_evaluator import TorchEvaluator


def evaluator_of(config: Config, weights: Mapping[str, Tensor], device: torch.device, threads: int) -> Evaluator:
    """What judges by weights.

    Args:
        config: of the run.
        weights: of its network, by name, on a CPU.
        device: where it judges.
        threads: on a CPU, those it uses.
    """
    dtype = number_type(config, device)
    if device.type == "cpu":
        return CellEvaluator(config.network, weights, dtype, threads)
    return TorchEvaluator(config.network, weights, device, dtype)
