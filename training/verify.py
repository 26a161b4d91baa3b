"""Whether an exported model is the network it was made of: the same answers on real positions of every board."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lifeline.board import MAX_BASE, MIN_BASE, board
from lifeline.env import BatchEnv
from lifeline.errors import ModelError
from lifeline.rules import OPENINGS, Rules
from lifeline.search.evaluator import FloatArray, OnnxEvaluator
from training.config import NetworkConfig
from training.network import Exportable, Network

POSITIONS = 1_000
BATCHES = (1, 7, 256)
TOLERANCE = 1e-4
"""Of |model - network| / (1 + |network|): relative for large numbers, absolute for small ones."""
# A network trained for long has logits of hundreds, and larger ones on boards it has never seen: there rounding alone
# shifts them by more. A model may be off so many times as far as the network itself is in float32, up to a limit.
_ROUNDINGS = 40
_MAX_TOLERANCE = 1e-2
# Positions of each board on which that is measured.
_MEASURED = 16

_KOMI = 5
_CHUNK = 64
Progress = Callable[[float], None]
"""Told the share of the work that is done, 0 to 1."""


@dataclass(frozen=True)
class Positions:
    """Positions on boards of one size, under any opening.

    Attributes:
        base: cells a side.
        planes: float32 [B, C, H, W].
        legal: bool [B, A].
        names: the opening and the text of each.
    """

    base: int
    planes: FloatArray
    legal: npt.NDArray[np.bool_]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.planes)


@dataclass(frozen=True)
class Judgement:
    """What a network says of positions.

    Attributes:
        policy_cells: float32 [B, N], logits.
        policy_global: float32 [B, 2], logits.
        value: float32 [B].
        rounding: how far float32 is off from float64 on some of the positions, in the measure of TOLERANCE.
    """

    policy_cells: FloatArray
    policy_global: FloatArray
    value: FloatArray
    rounding: float = 0.0

    @property
    def tolerance(self) -> float:
        """How far a model may be off."""
        return min(max(TOLERANCE, _ROUNDINGS * self.rounding), _MAX_TOLERANCE)

    def at(self, rows: npt.NDArray[np.int64]) -> Judgement:
        """What it says of some of the positions."""
        return Judgement(self.policy_cells[rows], self.policy_global[rows], self.value[rows], self.rounding)


@dataclass(frozen=True)
class Agreement:
    """How far a model is from its network.

    Attributes:
        positions: compared, each in every size of batch.
        difference: the one nearest to what is allowed, in the measure of TOLERANCE.
        where: the output, board and batch it was met in.
        allowed: there.
    """

    positions: int
    difference: float
    where: str
    allowed: float

    def line(self) -> str:
        """One line for a person."""
        sizes = ", ".join(map(str, BATCHES))
        return (
            f"{self.positions} positions of bases {MIN_BASE} to {MAX_BASE} and {len(OPENINGS)} openings, batches of "
            f"{sizes}: largest difference {self.difference:.1e} ({self.where}), allowed {self.allowed:.1e}"
        )


@dataclass(frozen=True)
class HalfDifference:
    """What rounding a network's weights to float16 changes.

    Attributes:
        positions: it was measured on.
        value_max, value_mean: absolute differences of the values.
        policy_max, policy_mean: total variation between the policies over legal actions, 0 to 1.
        same_move: share of the positions whose most probable action is the same.
    """

    positions: int
    value_max: float
    value_mean: float
    policy_max: float
    policy_mean: float
    same_move: float

    def line(self) -> str:
        """One line for a person."""
        return (
            f"float16 against float32 weights on {self.positions} positions: value {self.value_max:.1e} at most, "
            f"{self.value_mean:.1e} on average; policy (total variation) {self.policy_max:.1e} and "
            f"{self.policy_mean:.1e}; the same best move in {100 * self.same_move:.1f} %"
        )


def real_positions(count: int = POSITIONS, seed: int = 0) -> list[Positions]:
    """Running games after random play of all lengths, spread evenly over all bases and openings.

    Args:
        count: of positions in all, at least 30.
        seed: of the random play.
    """
    bases = range(MIN_BASE, MAX_BASE + 1)
    shares = np.diff(np.linspace(0, count, len(bases) * len(OPENINGS) + 1).astype(int)).reshape(len(bases), -1)
    out = []
    for base, counts in zip(bases, shares, strict=True):
        games = [_random_games(_rules(base, o), int(n), seed + base) for o, n in zip(OPENINGS, counts, strict=True)]
        names = [f"{env.rules.opening} {env.position(row).text()}" for env in games for row in range(env.batch_size)]
        planes, legal = ([getattr(env, name) for env in games] for name in ("observation", "legal_action_mask"))
        out.append(Positions(base, np.concatenate(planes), np.concatenate(legal), tuple(names)))
    return out


def _rules(base: int, opening: str) -> Rules:
    """Rules under which all planes are used by some base."""
    apart = opening != "strong_pie" and base % 2 == 0
    return Rules(base, opening, _KOMI if opening == "komi_pie" else 0, "forbidden" if apart else "allowed")


def _random_games(rules: Rules, count: int, seed: int) -> BatchEnv:
    """Running games after 0 to 2 N random plies."""
    many = BatchEnv(rules, 4 * count)
    plies = np.arange(4 * count) * 2 * rules.num_cells // (4 * count)
    many.step_random(plies, np.array([seed], np.uint64))
    running = np.flatnonzero(~many.terminated)  # at least the first, which has not begun
    env = BatchEnv(rules, count)
    env.scatter(None, many.gather(running[np.linspace(0, len(running) - 1, count).round().astype(int)]))
    return env


def judge(
    positions: Sequence[Positions],
    config: NetworkConfig,
    weights: Mapping[str, Tensor],
    progress: Progress | None = None,
) -> list[Judgement]:
    """What torch says of positions, in float32 on the CPU.

    Raises:
        ModelError: the weights are not those of such a network.
    """
    network = Network(config)
    try:
        network.load_state_dict({name: tensor.float().cpu() for name, tensor in weights.items()})
    except RuntimeError:
        raise ModelError("the weights do not fit the network") from None
    model, out, meter = Exportable(network).eval(), [], _Meter(_work(positions), progress)
    exact = Exportable(copy.deepcopy(network)).eval().double()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more would share small layers, and wait at each for whatever else the machine does
    try:
        for part in positions:
            chunks = []
            for start in range(0, len(part), _CHUNK):
                planes = torch.from_numpy(part.planes[start : start + _CHUNK])
                with torch.inference_mode():
                    chunks.append([output.numpy() for output in model(planes)])
                meter.add(planes[:, 0].numel())
            judgement = _judgement(part.base, *(np.concatenate(outputs) for outputs in zip(*chunks, strict=True)))
            out.append(replace(judgement, rounding=_rounding(exact, part, judgement)))
    finally:
        torch.set_num_threads(threads)
    return out


def _rounding(exact: Exportable, part: Positions, judgement: Judgement) -> float:
    """What `Judgement.rounding` says, by the network in float64."""
    rows = np.unique(np.linspace(0, len(part) - 1, _MEASURED).round().astype(int))
    with torch.inference_mode():
        outputs = [output.numpy() for output in exact(torch.from_numpy(part.planes[rows]).double())]
    want = _judgement(part.base, *outputs)
    return max(float(found.max()) for found in _differences(part.legal[rows], judgement.at(rows), want).values())


class _Meter:
    """Counts work, in places of the grid."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def add(self, work: int) -> None:
        self._done += work
        if self._progress:
            self._progress(self._done / self._total)


def _work(positions: Sequence[Positions]) -> int:
    """How much it is to judge positions once."""
    return sum(part.planes[:, 0].size for part in positions)


def _judgement(base: int, policy_grid: FloatArray, policy_global: FloatArray, value: FloatArray) -> Judgement:
    return Judgement(policy_grid.reshape(len(value), -1)[:, board(base).cell_to_grid], policy_global, value)


def compare(
    model: bytes, positions: Sequence[Positions], wanted: Sequence[Judgement], progress: Progress | None = None
) -> Agreement:
    """Hold a model against what its network says: logits of legal cells and of both global actions, and values.

    Args:
        model: the ONNX file.
        positions: what `real_positions` gives.
        wanted: what `judge` gives for them.
        progress: told how far it is.

    Raises:
        ModelError: they differ by more than is allowed, or the model cannot be used.
    """
    evaluator, worst, name = OnnxEvaluator(model), Agreement(sum(map(len, positions)), -1.0, "", TOLERANCE), ""
    meter = _Meter(len(BATCHES) * _work(positions), progress)
    for part, want in zip(positions, wanted, strict=True):
        for size in BATCHES:
            for start in range(0, len(part), size):
                # Full batches: the last one takes positions a second time.
                rows = np.arange(start, start + size) % len(part)
                got = _judgement(part.base, *evaluator.run(part.planes[rows]))
                for output, difference in _differences(part.legal[rows], got, want.at(rows)).items():
                    row = int(difference.max(axis=1).argmax())
                    most = float(difference[row].max())
                    if most / want.tolerance > worst.difference / worst.allowed:
                        where = f"{output}, base {part.base}, batch of {size}"
                        worst, name = (
                            replace(worst, difference=most, where=where, allowed=want.tolerance),
                            part.names[rows[row]],
                        )
                meter.add(min(size, len(part) - start) * part.planes[0, 0].size)
    if not worst.difference <= worst.allowed:
        raise ModelError(
            f"the model is not the network it was made of: they differ by {worst.difference:.3g} ({worst.where}), "
            f"where {worst.allowed:.1e} is allowed, on {name}"
        )
    return worst


def _differences(legal: npt.NDArray[np.bool_], got: Judgement, want: Judgement) -> dict[str, npt.NDArray[np.float64]]:
    """By output, float64 [B, ...] in the measure of TOLERANCE; illegal cells do not count."""
    cells = _difference(got.policy_cells, want.policy_cells) * legal[:, : want.policy_cells.shape[1]]
    return {
        "policy_grid": cells,
        "policy_global": _difference(got.policy_global, want.policy_global),
        "value": _difference(got.value, want.value)[:, None],
    }


def _difference(got: FloatArray, want: FloatArray) -> npt.NDArray[np.float64]:
    """In the measure of TOLERANCE; what is no number is infinitely far from everything."""
    difference = np.abs(got.astype(np.float64) - want) / (1 + np.abs(want))
    return np.asarray(np.nan_to_num(difference, nan=np.finfo(np.float64).max), np.float64)


def rounded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights rounded to float16, as float32."""
    return {name: tensor.half().float() for name, tensor in weights.items()}


def half_difference(
    positions: Sequence[Positions], full: Sequence[Judgement], half: Sequence[Judgement]
) -> HalfDifference:
    """What rounding changed, from what the network said of the same positions before and after."""
    values, variations, same = [], [], []
    for part, one, other in zip(positions, full, half, strict=True):
        values.append(np.abs(one.value - other.value))
        before, after = (_policy(part.legal, judgement) for judgement in (one, other))
        variations.append(np.abs(before - after).sum(axis=1) / 2)
        same.append(before.argmax(axis=1) == after.argmax(axis=1))
    value, variation = np.concatenate(values), np.concatenate(variations)
    return HalfDifference(
        len(value),
        float(value.max()),
        float(value.mean()),
        float(variation.max()),
        float(variation.mean()),
        float(np.concatenate(same).mean()),
    )


def _policy(legal: npt.NDArray[np.bool_], judgement: Judgement) -> npt.NDArray[np.float64]:
    """float64 [B, A]: probabilities over the legal actions."""
    logits = np.concatenate([judgement.policy_cells, judgement.policy_global], axis=1).astype(np.float64)
    logits = np.where(legal, logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float64)
