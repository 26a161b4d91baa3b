"""Evaluators: what a search asks for priors and values of its leaves."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lifeline.errors import ModelError
from lifeline.observation import NUM_PLANES, OBSERVATION_VERSION

FloatArray = npt.NDArray[np.float32]


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


# Raised when the names or shapes of a model's inputs and outputs change.
MODEL_FORMAT = 1
FORMAT_KEY = "lifeline_format"
OBSERVATION_KEY = "observation_version"
OUTPUTS = ("policy_grid", "policy_global", "value")


def gather_logits(env: Env, policy_grid: FloatArray, policy_global: FloatArray) -> FloatArray:
    """Logits by action, float32 [B, A], from a model's [B, H, W] and [B, 2]."""
    cells = env.action_to_grid[: env.num_actions - env.num_global_actions]
    return np.concatenate([policy_grid.reshape(len(policy_grid), -1)[:, cells], policy_global], axis=1)


class OnnxEvaluator:
    """A network in ONNX form, run on the CPU by ONNX Runtime. The file holds data only: loading it runs no code of it.

    Args:
        model: path of a file, or its bytes.
        threads: CPU threads a batch is spread over; 0 = all cores.

    Attributes:
        metadata: the text entries of the model, by name.

    Raises:
        ModelError: missing, damaged, no Lifeline model, or one of another version.
    """

    def __init__(self, model: Path | str | bytes, threads: int = 1) -> None:
        import onnxruntime

        source = "the model" if isinstance(model, bytes) else str(model)
        try:
            data = model if isinstance(model, bytes) else Path(model).read_bytes()
        except OSError as error:
            raise ModelError(f"cannot read {source}: {error.strerror or error}") from None
        options = onnxruntime.SessionOptions()
        # One thread a call, and a call for each share of the batch: shares meet once a batch, where threads inside the
        # session would meet at every layer, and wait there for a core whenever something else runs on the machine.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            # ONNX Runtime's errors have no common base; the first line says what is wrong with the file.
            reason = str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
            raise ModelError(f"{source} is no usable ONNX model: {reason}") from None
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        self._check(source)

    def _check(self, source: str) -> None:
        for key, needed in ((FORMAT_KEY, MODEL_FORMAT), (OBSERVATION_KEY, OBSERVATION_VERSION)):
            if key not in self.metadata:
                raise ModelError(f"{source} is no Lifeline model: it has no {key}")
            if self.metadata[key] != str(needed):
                raise ModelError(f"{source} has {key} {self.metadata[key][:20]!r}; this version reads {needed}")
        inputs = self._session.get_inputs()
        outputs = {o.name for o in self._session.get_outputs()}
        if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].shape[1] != NUM_PLANES:
            raise ModelError(f"{source} does not take {NUM_PLANES} planes")
        if not set(OUTPUTS) <= outputs:
            raise ModelError(f"{source} does not give {', '.join(OUTPUTS)}")
        self._input = inputs[0].name

    def run(self, planes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The raw outputs policy_grid [B, H, W], policy_global [B, 2], value [B] for planes [B, C, H, W]."""
        if self._pool is None or len(planes) < 2 * self._threads:
            return self._run(planes)
        shares = list(self._pool.map(self._run, np.array_split(planes, self._threads)))
        policy_grid, policy_global, value = (np.concatenate(parts) for parts in zip(*shares, strict=True))
        return policy_grid, policy_global, value

    def _run(self, planes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        policy_grid, policy_global, value = self._session.run(list(OUTPUTS), {self._input: planes})
        return policy_grid, policy_global, value

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Priors and values by the network, zeros for finished games; see `Evaluator.evaluate`."""
        running = np.flatnonzero(~leaves.terminated)
        if len(running) == leaves.batch_size:
            policy_grid, policy_global, value = self.run(leaves.observation)
            return gather_logits(leaves, policy_grid, policy_global), value
        logits, values = UniformEvaluator().evaluate(leaves)
        if len(running):
            policy_grid, policy_global, values[running] = self.run(leaves.observation[running])
            logits[running] = gather_logits(leaves, policy_grid, policy_global)
        return logits, values
