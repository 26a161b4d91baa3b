"""A network run by torch: what evaluates on a GPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lifeline.search.evaluator import Env, FloatArray, gather_logits
from training.config import NetworkConfig
from training.network import Exportable, network_with


class TorchEvaluator:
    """Evaluates on any torch device, over the grid, channels last.

    Args:
        config: size of the network.
        weights: its state dict; copied.
        device: where to run.
        dtype: what it multiplies in, float32 or bfloat16.

    Raises:
        ModelError: the weights are not those of such a network.
    """

    def __init__(
        self,
        config: NetworkConfig,
        weights: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._device, self._dtype = device, dtype
        model = Exportable(network_with(config, weights))
        self._model = model.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.inference_mode()
    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Priors and values by the network; see `Evaluator.evaluate`."""
        planes = torch.from_numpy(leaves.observation).to(self._device, memory_format=torch.channels_last)
        with torch.autocast(self._device.type, self._dtype, enabled=self._dtype != torch.float32):
            policy_grid, policy_global, value = self._model(planes)
        grid, other = policy_grid.float().cpu().numpy(), policy_global.float().cpu().numpy()
        return gather_logits(leaves, grid, other), np.asarray(value.float().cpu().numpy())
