"""How kernels are compiled: one decorator, a cache that cannot go stale, and two bit instructions.

Numba's own cache looks only at the file that holds a function: a kernel edited in another file, and called from this
one, would be served in its old form, and so would a constant changed elsewhere. So the cache lives in a folder named
after a hash of all sources that kernels are made of, of this interpreter and of the compiler's versions.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

# Folders of older sources that are kept, so that two checkouts used in turn do not compile afresh each time.
_KEEP = 6


def user_cache() -> Path:
    """The folder for what can be made again: LIFELINE_CACHE_DIR, or the system's usual place."""
    if os.environ.get("LIFELINE_CACHE_DIR"):
        return Path(os.environ["LIFELINE_CACHE_DIR"])
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "lifeline"
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "lifeline"


# What kernels never import, by the layers of the package: editing these compiles nothing anew.
_ABOVE_KERNELS = (
    "play",
    "adapters",
    "commands",
    "cli.py",
    "render.py",
    "svg.py",
    "groups.py",
    "show.py",
    "answers.py",
    "bench_search.py",
    "game_record.py",
    "record_json.py",
    "records.py",
    "movelist.py",
    "files.py",
    "version.py",
)


def kernel_sources() -> list[Path]:
    """The sources kernels are made of, in a fixed order: those that define them, and those they take constants from."""
    package = Path(__file__).parent
    return sorted(p for p in package.rglob("*.py") if p.relative_to(package).parts[0] not in _ABOVE_KERNELS)


def kernel_hash() -> str:
    """Hex digest over all kernel sources, the interpreter and the compiler's versions."""
    digest = hashlib.sha256()
    for path in kernel_sources():
        digest.update(str(path.relative_to(Path(__file__).parent)).encode() + b"\0" + path.read_bytes() + b"\0")
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    digest.update("\0".join(versions).encode())
    return digest.hexdigest()[:20]


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """The folder compiled kernels are kept in, made if need be; None when no folder can be written."""
    for root in (
        user_cache(),
        Path(tempfile.gettempdir()) / f"lifeline-{os.getuid() if hasattr(os, 'getuid') else 0}",
    ):
        folder = root / "kernels" / kernel_hash()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
        except OSError:
            continue
        _prune(folder)
        return folder
    return None


def _prune(current: Path) -> None:
    """Remove the compiled code of old sources, keeping the folders used last."""
    try:
        others = sorted((p for p in current.parent.iterdir() if p != current), key=lambda p: p.stat().st_mtime)
    except OSError:  # another process is pruning too
        return
    for old in others[:-_KEEP]:
        shutil.rmtree(old, ignore_errors=True)


# No reference counts: Numba would count one for each array at each call, which took half of the time of small boards.
# Without them a kernel cannot allocate, and does not compile if it tries.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def kernel(function: F) -> F:
    """Compile a function over flat arrays: cached on disk, without the interpreter lock, without bounds checks.

    Kernels validate nothing, allocate nothing and never raise; the Python code around them does.
    """
    return _compile(function, forceinline=False)


def inlined_kernel(function: F) -> F:
    """A kernel that is compiled anew into every kernel that calls it: for what hot loops spend their time on."""
    return _compile(function, forceinline=True)


def _compile(function: F, forceinline: bool) -> F:
    folder = cache_folder()
    if folder is None:
        return cast(F, numba.njit(forceinline=forceinline, **_OPTIONS)(function))
    # Numba reads the folder when a function is decorated. Set back at once: the caches of others stay where they are.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return cast(F, numba.njit(cache=True, forceinline=forceinline, **_OPTIONS)(function))
    finally:
        numba.config.CACHE_DIR = before


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Number of set bits of a uint64."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), build


@intrinsic
def lowest_bit(typingctx: Any, word: Any) -> Any:
    """Index of the lowest set bit of a uint64; 64 when none is set."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.false_bit)

    return types.uint64(types.uint64), build
