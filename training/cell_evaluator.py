"""A network run over cells on a CPU: what self-play judges with there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from lifeline.search.evaluator import Env, FloatArray, judge_running
from training.cell_tower import CellTower
from training.cells import features_of_cells, head_features, heads_of_cells
from training.config import NetworkConfig
from training.neighbours import neighbour_table
from training.network import network_with

# Positions at once, at most. In bfloat16, where products are not made in blocks, what lies between two layers no longer
# fits into a core's cache with more of them.
_CHUNK = {torch.float32: 128, torch.bfloat16: 64}


class CellEvaluator:
    """Evaluates on the CPU. How a position is judged may depend on the others in its last bits.

    Args:
        config: size of the network.
        weights: its state dict; copied.
        dtype: what the factors of its convolutions are rounded to: float32 or bfloat16.
        threads: CPU threads a batch is spread over.

    Raises:
        ModelError: the weights are not those of such a network.
    """

    def __init__(
        self, config: NetworkConfig, weights: Mapping[str, Tensor], dtype: torch.dtype, threads: int = 1
    ) -> None:
        self._network = network_with(config, weights)
        self._tower = CellTower(self._network) if dtype == torch.float32 else None
        self._dtype, self._threads = dtype, threads
        self._tables: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}
        # Said in each thread, the only one too: else torch spreads products over all cores, and waits for them.
        self._pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Priors and values by the network, zeros for finished games; see `Evaluator.evaluate`."""
        return judge_running(leaves, self.run)

    def run(self, planes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """policy_grid [B, H, W], policy_global [B, 2], value [B] for planes [B, C, H, W], all of one board."""
        chunks = max(math.ceil(len(planes) / _CHUNK[self._dtype]), min(self._threads, len(planes)))
        parts = list(self._pool.map(self._run, np.array_split(planes, chunks)))
        policy_grid, policy_global, value = (np.concatenate(part) for part in zip(*parts, strict=True))
        return policy_grid, policy_global, value

    @torch.inference_mode()
    def _run(self, planes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        size, _, *shape = planes.shape
        cells, table = self._board(planes)
        by_cells = torch.from_numpy(planes).flatten(2)[:, :, cells].permute(1, 2, 0).contiguous()
        if self._tower is None:
            features = features_of_cells(self._network, by_cells, table, self._dtype)
        else:
            features = head_features(self._network, self._tower.run(self._network.seen(by_cells, 0), table))
        policy_cells, policy_global, value_logit = heads_of_cells(self._network, features)
        grid = torch.zeros(size, math.prod(shape))
        grid[:, cells] = policy_cells
        return grid.view(size, *shape).numpy(), policy_global.numpy(), torch.tanh(value_logit / 2).numpy()

    def _board(self, planes: FloatArray) -> tuple[Tensor, Tensor]:
        """The cells of the board on its grid, int64 [N], and their neighbours."""
        _, _, height, width = planes.shape
        if (height, width) not in self._tables:
            cells = np.flatnonzero(planes[0, 0])
            self._tables[height, width] = torch.from_numpy(cells), neighbour_table(cells, (height, width))
        return self._tables[height, width]
