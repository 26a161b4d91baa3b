"""The seven cells that a hex convolution looks at."""

TAPS = ((-1, 0), (-1, 1), (0, -1), (0, 0), (0, 1), (1, -1), (1, 0))
"""Rows and columns on the axial grid, in the order of the weights: a 3x3 kernel without two opposite corners."""
