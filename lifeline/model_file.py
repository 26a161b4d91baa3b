"""Model files: what a file must be before ONNX Runtime is given it.

A model is an ONNX file whose last metadata entry, `sha256`, is its checksum: the last 64 bytes of the file are the
hexadecimal SHA-256 sum of all bytes before them. It is there in models that never were a file, too: every model is
checked in the same way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from lifeline.errors import ModelError
from lifeline.observation import OBSERVATION_VERSION
from lifeline.onnx_file import check_graph, read_metadata

# Raised when the names or shapes of a model's inputs and outputs change, or the form of its file. 2: the checksum.
MODEL_FORMAT = 2
FORMAT_KEY = "lifeline_format"
OBSERVATION_KEY = "observation_version"
INPUT = "planes"
OUTPUTS = ("policy_grid", "policy_global", "value")

MAX_BYTES = 1_000_000_000
"""Larger files are refused unread."""
CHECKSUM_KEY = "sha256"
_DIGITS = 64
# A metadata entry as protobuf writes it, up to its value: field 14 of the model, in it fields 1 (key) and 2 (value).
_MARK = bytes([14 << 3 | 2, 2 + len(CHECKSUM_KEY) + 2 + _DIGITS, 1 << 3 | 2, len(CHECKSUM_KEY)])
_MARK += CHECKSUM_KEY.encode() + bytes([2 << 3 | 2, _DIGITS])
# How every model of this project begins: the ONNX version, then the producer's name.
_BEGINNING = b"\x12\x08lifeline"


@dataclass(frozen=True)
class ModelFile:
    """A model that has been checked.

    Attributes:
        source: what messages call it.
        data: the ONNX file.
        metadata: its text entries, by name.
    """

    source: str
    data: bytes
    metadata: dict[str, str]


def seal(data: bytes) -> bytes:
    """An ONNX file with its checksum; it must have none yet."""
    data += _MARK
    return data + hashlib.sha256(data).hexdigest().encode()


def load_model(model: Path | str | bytes) -> ModelFile:
    """Read a model and check all of it that can be checked without running it.

    Args:
        model: path of a file, or its bytes.

    Raises:
        ModelError: missing, too large, damaged, no model of this project, one of another version, or one that holds
            more than a network.
    """
    source = "the model" if isinstance(model, bytes) else str(model)
    data = model if isinstance(model, bytes) else _read(Path(model), source)
    if not data:
        raise ModelError(f"{source} is empty")
    if data[-_DIGITS - len(_MARK) : -_DIGITS] != _MARK:
        raise ModelError(_without_checksum(data, source))
    if hashlib.sha256(memoryview(data)[:-_DIGITS]).hexdigest().encode() != data[-_DIGITS:]:
        raise ModelError(f"{source} is damaged: its SHA-256 sum is not the one at its end")
    metadata = read_metadata(data, source)
    for key, needed in ((FORMAT_KEY, MODEL_FORMAT), (OBSERVATION_KEY, OBSERVATION_VERSION)):
        if key not in metadata:
            raise ModelError(f"{source} is no Lifeline model: it has no {key}")
        if metadata[key] != str(needed):
            raise ModelError(_other_version(source, key, metadata[key], needed))
    check_graph(data, source)
    return ModelFile(source, data, metadata)


def _read(path: Path, source: str) -> bytes:
    try:
        if path.is_dir():
            raise ModelError(f"{source} is no model but a directory; a run's model is the file bot.onnx in it")
        if path.exists() and not path.is_file():
            raise ModelError(f"{source} is no file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        raise ModelError(f"cannot read {source}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise ModelError(f"{source} is larger than any model: more than {MAX_BYTES // 10**6} MB")
    return data


def _without_checksum(data: bytes, source: str) -> str:
    """What is wrong with a file that does not end as a model does."""
    kind = _other_kind(data)
    if kind:
        return f"{source} is no ONNX file but {kind}; nothing in it was run"
    try:
        metadata = read_metadata(data, source)
    except ModelError as error:
        if _BEGINNING in data[:20]:
            return f"{source} is damaged or cut short: it does not end with its checksum"
        return str(error)
    if FORMAT_KEY in metadata and metadata[FORMAT_KEY] != str(MODEL_FORMAT):
        return _other_version(source, FORMAT_KEY, metadata[FORMAT_KEY], MODEL_FORMAT)
    if FORMAT_KEY in metadata or _BEGINNING in data[:20]:
        return f"{source} is damaged or cut short: it does not end with its checksum"
    return f"{source} is no Lifeline model: it has no {FORMAT_KEY}"


def _other_version(source: str, key: str, found: str, needed: int) -> str:
    remedy = "; lifeline export makes one of its checkpoint" if key == FORMAT_KEY else ""
    return f"{source} has {key} {found[:20]!r}; this version reads {needed}{remedy}"


def _other_kind(data: bytes) -> str | None:
    """What a file is that is often taken for a model; None if it is none of those."""
    if data.startswith(b"PK\x03\x04"):
        return "a zip archive, as torch.save and numpy.savez write"
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a pickle"
    if data.startswith(b"\x1f\x8b"):
        return "a gzip archive"
    if data[4:8] == b"ORTM":
        return "a model in ONNX Runtime's own format"
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8:
        return "a safetensors file"
    return None
