"""The seven cells that a hex convolution looks at, and which of a hexagon's symmetries a network may keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

TAPS = ((-1, 0), (-1, 1), (0, -1), (0, 0), (0, 1), (1, -1), (1, 0))
"""Rows and columns on the axial grid, in the order of the weights: a 3x3 kernel without two opposite corners."""
Equivariance = Literal["none", "turns", "all"]
ORDER: Mapping[Equivariance, int] = {"none": 1, "turns": 6, "all": 12}
"""How many symmetries each keeps: the multiples that channels come in."""
