"""Compiled kernels are kept between runs, and never served in an older form than their sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import lifeline
from lifeline.compiled import lowest_bit, popcount

# A kernel in a file of its own that calls one of streams.py: a small stand-in for all the kernels that do so, as its
# compilation takes no second. Numba's own cache looks at the caller's file alone and would miss an edit of the other.
CALLER = """
import numpy as np
from lifeline.compiled import kernel
from lifeline.streams import next_random


@kernel
def draw(stream):
    return next_random(stream) >> np.uint64(1)
"""
PRINT_DRAW = "import numpy as np; from lifeline.caller import draw; print(draw(np.array([7], np.uint64)))"
MULTIPLIER, OTHER_MULTIPLIER = "0xBF58476D1CE4E5B9", "0xBF58476D1CE4E5BB"


class Checkout:
    """A copy of the package with a cache folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(
            Path(lifeline.__file__).parent, folder / "lifeline", ignore=shutil.ignore_patterns("__pycache__")
        )
        (folder / "lifeline" / "caller.py").write_text(CALLER)

    def run(self, cache, code=PRINT_DRAW):
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "LIFELINE_CACHE_DIR": str(cache)}
        environment.pop("NUMBA_CACHE_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def edit(self, file, old, new):
        path = self.folder / "lifeline" / file
        source = path.read_text()
        assert source.count(old) == 1
        path.write_text(source.replace(old, new))


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def kept_files(cache):
    return {p: p.stat().st_mtime_ns for p in cache.rglob("*") if p.suffix in (".nbi", ".nbc")}


def test_an_edited_kernel_is_compiled_anew_in_callers_of_other_files(checkout, tmp_path):
    cache = tmp_path / "cache"
    before = checkout.run(cache)
    checkout.edit("streams.py", MULTIPLIER, OTHER_MULTIPLIER)
    after = checkout.run(cache)
    assert after != before
    assert after == checkout.run(tmp_path / "cold_cache")
    checkout.edit("streams.py", OTHER_MULTIPLIER, MULTIPLIER)
    assert checkout.run(cache) == before


def test_an_unedited_kernel_is_compiled_once(checkout, tmp_path):
    cache = tmp_path / "cache"
    first = checkout.run(cache)
    kept = kept_files(cache)
    assert kept
    assert checkout.run(cache) == first
    assert kept_files(cache) == kept


def test_a_source_above_the_kernels_does_not_throw_the_cache_away(checkout, tmp_path):
    hash_of = "from lifeline.compiled import kernel_hash; print(kernel_hash())"
    before = checkout.run(tmp_path / "cache", hash_of)
    checkout.edit("commands/training.py", "Train a bot", "Train bots")
    assert checkout.run(tmp_path / "cache", hash_of) == before


def test_without_a_folder_to_write_kernels_still_run(checkout, tmp_path):
    """Every folder the cache may be in is a file here."""
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    code = f"import tempfile; tempfile.tempdir = {str(blocked)!r}; {PRINT_DRAW}"
    assert checkout.run(blocked, code) == checkout.run(tmp_path / "cache")


def test_numbas_own_cache_setting_is_left_alone(checkout, tmp_path):
    code = "import numba; before = numba.config.CACHE_DIR; import lifeline; print(numba.config.CACHE_DIR == before)"
    assert checkout.run(tmp_path / "cache", code) == "True"


@pytest.mark.parametrize(
    ("word", "count", "lowest"), [(0, 0, 64), (1, 1, 0), (1 << 63, 1, 63), (0b1100, 2, 2), (2**64 - 1, 64, 0)]
)
def test_bit_instructions_at_the_ends_of_a_word(word, count, lowest):
    assert bits(np.uint64(word)) == (count, lowest)


@numba.njit
def bits(word):
    return popcount(word), lowest_bit(word)


def test_a_kernel_that_allocates_does_not_compile():
    """Without reference counts, that is: they must not quietly come back, as they halve the engine's speed."""

    def allocate(n):
        return np.zeros(n).sum()

    assert numba.njit(allocate)(3) == 0
    with pytest.raises(numba.core.errors.NumbaError):
        numba.njit(**lifeline.compiled._OPTIONS)(allocate)(3)
