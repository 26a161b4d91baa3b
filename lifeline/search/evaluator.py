"""Evaluators: what a search asks for priors and values of its leaves."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lifeline.board import MIN_BASE, board
from lifeline.errors import ModelError
from lifeline.model_file import INPUT, OUTPUTS, load_model
from lifeline.observation import NUM_PLANES

FloatArray = npt.NDArray[np.float32]

# A hyperbolic tangent may be rounded up.
_MAX_VALUE = 1.0001


class Env(Protocol):
    """The part of `BatchEnv` that search relies on; any game that has it can be searched."""

    batch_size: int
    num_actions: int
    num_global_actions: int

    @property
    def action_to_grid(self) -> npt.NDArray[np.int64]: ...
    @property
    def legal_action_mask(self) -> npt.NDArray[np.bool_]: ...
    @property
    def to_play(self) -> npt.NDArray[np.int8]: ...
    @property
    def terminated(self) -> npt.NDArray[np.bool_]: ...
    @property
    def outcome(self) -> npt.NDArray[np.int8]: ...
    @property
    def observation(self) -> npt.NDArray[np.float32]: ...
    def step(self, actions: npt.NDArray[np.int64]) -> None: ...
    def gather(self, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[Any]: ...
    def scatter(self, rows: npt.NDArray[np.int64] | None, states: npt.NDArray[Any]) -> None: ...


class Evaluator(Protocol):
    """Judges positions."""

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Judge every game of a batch.

        Args:
            leaves: B games; what is returned for finished ones is ignored, but must be there.
        Returns:
            prior_logits float32 [B, A], unnormalised log-probabilities, illegal actions included, and
            values float32 [B] in [-1, 1] from the player to move.
        """
        ...


class UniformEvaluator:
    """Knows nothing: equal priors, value 0. The evaluator that costs nothing, for tests and measurements."""

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Zeros; see `Evaluator.evaluate`."""
        return (
            np.zeros((leaves.batch_size, leaves.num_actions), np.float32),
            np.zeros(leaves.batch_size, np.float32),
        )


class ExactEvaluator:
    """Equal priors and the true value of each position, from a function that knows it.

    Args:
        values_of: takes the states of B running games, gives their values, each +1 or -1 from the player to move.
    """

    def __init__(self, values_of: Callable[[npt.NDArray[Any]], Sequence[float]]) -> None:
        self._values_of = values_of

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Exact values; see `Evaluator.evaluate`."""
        priors, values = UniformEvaluator().evaluate(leaves)
        running = np.flatnonzero(~leaves.terminated)
        if len(running):
            values[running] = self._values_of(leaves.gather(running))
        return priors, values


def gather_logits(env: Env, policy_grid: FloatArray, policy_global: FloatArray) -> FloatArray:
    """Logits by action, float32 [B, A], from a model's [B, H, W] and [B, 2]."""
    cells = env.action_to_grid[: env.num_actions - env.num_global_actions]
    return np.concatenate([policy_grid.reshape(len(policy_grid), -1)[:, cells], policy_global], axis=1)


Run = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""What a network does: the outputs policy_grid [B, H, W], policy_global [B, 2], value [B] for planes [B, C, H, W]."""


def judge_running(leaves: Env, run: Run) -> tuple[FloatArray, FloatArray]:
    """What `Evaluator.evaluate` returns, by a network that is shown the running games; zeros for finished ones."""
    running = np.flatnonzero(~leaves.terminated)
    if len(running) == leaves.batch_size:
        policy_grid, policy_global, value = run(leaves.observation)
        return gather_logits(leaves, policy_grid, policy_global), value
    logits, values = UniformEvaluator().evaluate(leaves)
    if len(running):
        policy_grid, policy_global, values[running] = run(leaves.observation[running])
        logits[running] = gather_logits(leaves, policy_grid, policy_global)
    return logits, values


class OnnxEvaluator:
    """A network in ONNX form, run on the CPU by ONNX Runtime. The file holds data only: loading it runs no code of it.

    Args:
        model: path of a file, or its bytes.
        threads: CPU threads a batch is spread over; 0 = all cores.

    Attributes:
        metadata: the text entries of the model, by name.

    Raises:
        ModelError: see `load_model`; or its inputs or outputs are not those of a model, or it gives no finite numbers.
    """

    def __init__(self, model: Path | str | bytes, threads: int = 1) -> None:
        import onnxruntime

        file = load_model(model)
        self._source, self.metadata = file.source, file.metadata
        options = onnxruntime.SessionOptions()
        # One thread a call, and a call for each share of the batch: shares meet once a batch, where threads inside the
        # session would meet at every layer, and wait there for a core whenever something else runs on the machine.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                file.data,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=0,  # a second try would fail as the first did, and be announced on the standard output
            )
            inputs = [(i.name, i.type, len(i.shape), i.shape[1:2]) for i in self._session.get_inputs()]
            outputs = {o.name for o in self._session.get_outputs()}
        except Exception as error:  # ONNX Runtime's errors have no common base
            raise ModelError(f"{self._source} is no usable ONNX model: {_reason(error)}") from None
        seen = inputs[0][3][0] if len(inputs) == 1 and len(inputs[0][3]) else None
        if not isinstance(seen, int) or not 0 < seen <= NUM_PLANES or inputs != [(INPUT, "tensor(float)", 4, [seen])]:
            raise ModelError(
                f"{self._source} does not take {INPUT}, float32 [B, C, H, W] with at most {NUM_PLANES} planes"
            )
        self._planes = seen
        if not set(OUTPUTS) <= outputs:
            raise ModelError(f"{self._source} does not give {', '.join(OUTPUTS)}")
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        # What a file says of its shapes need not be true: two empty boards of base 3 show it.
        small = board(MIN_BASE)
        planes = np.zeros((2, NUM_PLANES, *small.grid_shape), np.float32)
        planes[:, 0].reshape(2, -1)[:, small.cell_to_grid] = 1
        self._run(planes)

    def run(self, planes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The raw outputs policy_grid [B, H, W], policy_global [B, 2], value [B] for planes [B, C, H, W].

        Raises:
            ModelError: the model fails on them, or gives other shapes, or numbers that are not finite or, for values,
                not in [-1, 1].
        """
        if self._pool is None or len(planes) < 2 * self._threads:
            return self._run(planes)
        shares = list(self._pool.map(self._run, np.array_split(planes, self._threads)))
        policy_grid, policy_global, value = (np.concatenate(parts) for parts in zip(*shares, strict=True))
        return policy_grid, policy_global, value

    def _run(self, planes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        planes = np.ascontiguousarray(planes[:, : self._planes])  # a model may see the first ones alone
        try:
            policy_grid, policy_global, value = self._session.run(list(OUTPUTS), {INPUT: planes})
        except Exception as error:
            raise ModelError(f"{self._source} fails on planes of shape {planes.shape}: {_reason(error)}") from None
        size, _, *grid = planes.shape
        for name, output, shape in zip(
            OUTPUTS, (policy_grid, policy_global, value), ((size, *grid), (size, 2), (size,)), strict=True
        ):
            if output.shape != shape or output.dtype != np.float32:
                raise ModelError(
                    f"{self._source} gives {name} as {output.dtype} {list(output.shape)} in place of {list(shape)}"
                )
            if not np.isfinite(output).all():
                raise ModelError(f"{self._source} gives numbers that are not finite in {name}")
        if not (np.abs(value) <= _MAX_VALUE).all():
            raise ModelError(f"{self._source} gives a value outside -1 to 1")
        return policy_grid, policy_global, value

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Priors and values by the network, zeros for finished games; see `Evaluator.evaluate`."""
        return judge_running(leaves, self.run)


def _reason(error: Exception) -> str:
    """What ONNX Runtime complains of, in one line."""
    lines = str(error).strip().splitlines()
    text = lines[0][:160] if lines else type(error).__name__
    return "".join(c if c.isprintable() else "?" for c in text)  # it may quote the file
