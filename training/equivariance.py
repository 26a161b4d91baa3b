"""Networks that see a turned board as they see the board: what they say turns with it, by construction.

The tower's channels come in groups of one for each symmetry: g takes channel (f, h) to (f, g h), the regular
representation. A layer commutes with all g if a weight equals those that g takes it to, output, input and tap at
once. Such a set of weights, an orbit, is one free number. The weights are kept in full, so that evaluators, files and
exports know nothing of this; only the learner sees to it that equal weights stay equal.

Source: group-equivariant convolutions (Cohen and Welling 2016), on hexagons as in Hoogeboom et al. (2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.taps import ORDER, TAPS, Equivariance

_PLAIN = (("policy_out.", "policy_global.", "value_out.", "auxiliary."), ("stem.",))
"""Layers whose outputs, and layers whose inputs, are no groups of channels but stay as they are when all is turned."""


def group(equivariance: Equivariance) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The symmetries of a hexagon that are kept, n of them, the first of them nothing at all.

    Returns:
        taps: int64 [n, 7], which tap of `TAPS` each takes each tap to.
        product: int64 [n, n], entry [g, h] the symmetry that does h, then g.
    """
    found = []
    for mirrored in (False, True):
        for turns in range(6):
            found.append(tuple(TAPS.index(_moved(tap, mirrored, turns)) for tap in TAPS))
    found = found[: ORDER[equivariance]]
    taps = np.array(found, np.int64)
    product = [[found.index(tuple(taps[g][taps[h]])) for h in range(len(found))] for g in range(len(found))]
    return taps, np.array(product, np.int64)


def _moved(tap: tuple[int, int], mirrored: bool, turns: int) -> tuple[int, int]:
    row, column = tap[::-1] if mirrored else tap
    for _ in range(turns):
        row, column = -column, row + column  # a sixth of a turn in axial coordinates
    return row, column


class Tie:
    """Which weights of a network are equal. Does nothing where no symmetry is kept.

    Attributes:
        names: of the parameters that have equal weights.

    Args:
        equivariance: what is kept.
        shapes: of the parameters, by name; those of auxiliary heads begin with "auxiliary.".
        device: where they lie.
    """

    def __init__(
        self,
        equivariance: Equivariance,
        shapes: Mapping[str, Sequence[int]],
        device: torch.device | str = "cpu",
    ) -> None:
        self._orbits: dict[str, tuple[Tensor, Tensor]] = {}
        taps, product = group(equivariance)
        for name, shape in shapes.items():
            members, orbit = _orbits(name, tuple(shape), taps, product)
            if len(members) > 1:
                self._orbits[name] = torch.from_numpy(members).to(device), torch.from_numpy(orbit).to(device)
        self.names = frozenset(self._orbits)

    def average(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor with each number replaced by the mean of its orbit: of a gradient, what of it leaves the tie."""
        if name not in self._orbits:
            return tensor
        members, orbit = self._orbits[name]
        by_member = tensor.flatten().index_select(0, members.flatten()).view(members.shape)
        return by_member.mean(dim=0).index_select(0, orbit).view(tensor.shape)

    def first(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor with each number replaced by the first of its orbit: of weights, such that are equal."""
        if name not in self._orbits:
            return tensor
        members, orbit = self._orbits[name]
        return tensor.flatten().index_select(0, members[0]).index_select(0, orbit).view(tensor.shape)

    def holds(self, name: str, tensor: Tensor) -> bool:
        """Whether those that are to be equal are, but for rounding to 16 bits."""
        return bool((tensor - self.first(name, tensor)).abs().max() <= 4e-3 * tensor.abs().max())


def _orbits(
    name: str, shape: tuple[int, ...], taps: npt.NDArray[np.int64], product: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of a parameter with M numbers in K orbits: their flat places, int64 [members, K]; which each is in, int64 [M]."""
    count = len(taps)
    moves = [np.repeat(np.arange(size)[None], count, axis=0) for size in shape]
    turned = [axis for axis in range(min(2, len(shape))) if not name.startswith(_PLAIN[axis])]
    for axis in turned:
        channel, which = np.divmod(np.arange(shape[axis]), count)
        moves[axis] = channel * count + product[:, which]
    if len(shape) == 3:
        moves[2] = taps
    places = np.zeros((count, 1), np.int64)
    for axis, size in enumerate(shape):
        places = (places[:, :, None] * size + moves[axis][:, None, :]).reshape(count, -1)
    first, orbit = np.unique(places.min(axis=0), return_inverse=True)
    # Either only the identity leaves a number in its place, or, where nothing turns, all do.
    return (places[:, first] if turned else first[None]), orbit.reshape(-1)
