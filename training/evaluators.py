"""What games are made with: the form in which weights are published, and what judges by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lifeline.search.evaluator import Evaluator, OnnxEvaluator
from training.cell_evaluator import CellEvaluator
from training.config import Config
from training.devices import number_type
from training.export import export_onnx
from training.torch_evaluator import TorchEvaluator


def published(config: Config, weights: Mapping[str, Tensor], device: torch.device) -> Any:
    """Weights for an evaluator on such a device: an ONNX file where ONNX Runtime is the fastest, else by name."""
    if device.type == "cpu" and number_type(config, device) == torch.float32:
        return export_onnx(config.network, weights)
    return {name: tensor.cpu() for name, tensor in weights.items()}


def evaluator_of(config: Config, model: Any, device: torch.device, threads: int) -> Evaluator:
    """What judges by weights that were published.

    Args:
        config: of the run.
        model: from `published`, perhaps by a machine with another processor.
        device: where it judges.
        threads: on a CPU, those it uses.
    """
    if isinstance(model, bytes):
        return OnnxEvaluator(model, threads)
    dtype = number_type(config, device)
    if device.type == "cpu":
        return CellEvaluator(config.network, model, dtype, threads)
    return TorchEvaluator(config.network, model, device, dtype)
