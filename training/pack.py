"""A run in one file: all that is needed to go on elsewhere, and nothing else."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path

from lifeline.errors import CheckpointError, RunError
from lifeline.files import write_atomic
from training import checkpoint, rundir
from training.shards import ShardStore

# What a pack may hold, and how large it may be: it comes from anywhere.
_TOP = {
    rundir.CONFIG_FILE,
    rundir.RUN_FILE,
    rundir.RATINGS_FILE,
    rundir.SESSIONS_FILE,
    rundir.CHECKPOINTS,
    rundir.GAMES,
    rundir.MODELS,
}
_MOST_BYTES = 8 << 30
_MOST_FILES = 100_000
_TRIES = 3


def pack(folder: Path, out: Path) -> int:
    """Write the newest checkpoint of a run, the games of its window and its ratings into one file.

    Args:
        folder: the run's directory; the run may go on meanwhile.
        out: the file, a gzipped tar; replaced if it is there.
    Returns:
        Bytes written.

    Raises:
        RunError: the directory holds no run, or the file cannot be written.
        CheckpointError: there is no checkpoint, or it is damaged.
    """
    config = rundir.read_config(folder)
    for attempt in range(_TRIES):
        try:
            data = _packed(folder, config.storage.max_mb * 1e6, config.replay.capacity)
            break
        except (OSError, CheckpointError):
            # A run that goes on may have removed what was being read.
            if attempt + 1 == _TRIES:
                raise
    try:
        write_atomic(out, data)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror or error}") from None
    return len(data)


def _packed(folder: Path, max_bytes: float, capacity: int) -> bytes:
    newest = checkpoint.newest_whole(folder / rundir.CHECKPOINTS)
    samples = int(newest.counters["samples"])
    paths = [folder / name for name in (rundir.CONFIG_FILE, rundir.RUN_FILE, rundir.RATINGS_FILE, rundir.SESSIONS_FILE)]
    paths += [newest.path / checkpoint.MANIFEST, *(newest.path / name for name in newest.manifest["files"])]
    shards = [s for s in ShardStore(folder / rundir.GAMES, max_bytes).shards if s.end <= samples]
    paths += [s.path for s in shards if s.end > samples - min(capacity, int(newest.counters["window"]))]
    paths += sorted((folder / rundir.MODELS).glob("*"))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as tar:
        for path in paths:
            if path.exists():
                tar.add(path, arcname=str(path.relative_to(folder)), recursive=False)
    return buffer.getvalue()


def unpack(file: Path, folder: Path) -> None:
    """Lay a packed run out in a directory of its own.

    Raises:
        RunError: the file is no packed run or damaged, or the directory is in use or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} is in use already; name another with --run-dir")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder.parent))
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror or error}") from None
    try:
        with tarfile.open(file, mode="r:gz") as tar:
            members: list[tarfile.TarInfo] = []
            size = 0
            for member in tar:
                size += member.size
                if Path(member.name).parts[:1] == () or Path(member.name).parts[0] not in _TOP or not member.isfile():
                    raise RunError(f"{file} is no packed run: it holds {member.name[:60]!r}")
                if size > _MOST_BYTES or len(members) > _MOST_FILES:
                    raise RunError(f"{file} is larger than any packed run")
                members.append(member)
            # The filter keeps names inside the folder and drops owners and special bits.
            tar.extractall(temporary, members=members, filter="data")
        rundir.read_config(temporary)
        checkpoint.newest_whole(temporary / rundir.CHECKPOINTS)
        if folder.exists():
            folder.rmdir()
        temporary.rename(folder)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise RunError(f"{file} is no packed run or damaged: {reason}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
