"""What stands in an ONNX file, read without a library and without trusting any of it.

ONNX files are protobuf messages. A network of this project needs little of what they may hold: everything else is
refused by its place in the file, before ONNX Runtime sees it. So no file reads another, calls code of others, or loops.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lifeline.errors import ModelError

# Of the networks that can be configured the largest has some 20 000 parts; each costs a microsecond.
_MAX_PARTS = 200_000
_MAX_ENTRIES, _MAX_KEY, _MAX_VALUE = 100, 100, 40_000
_UNPRINTABLE = frozenset(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))

# The fields that may occur in each kind of message, by the numbers of onnx.proto.
_MODEL = {1, 2, 3, 4, 5, 6, 7, 8, 14}  # versions, names, graph, operator sets, metadata; no functions, no training
_GRAPH = {1, 2, 5, 10, 11, 12, 13, 16}  # nodes, weights, inputs, outputs, value types; nothing sparse or quantised
_NODE = {1, 2, 3, 4, 5, 6, 7, 9}
_ATTRIBUTE = {1, 2, 3, 4, 5, 7, 8, 13, 20}  # numbers, texts and tensors; no graphs
_TENSOR = {1, 2, 8, 9, 12, 14, 16}  # shape, type, name, raw data, and where the data is: here
_GRAPH_FIELD, _OPSET_FIELD, _METADATA_FIELD = 7, 8, 14

# What networks are exported to, and a few that other versions of the exporter would take for the same.
OPERATORS = (
    *("Add", "Cast", "Concat", "Constant", "Conv", "Div", "Flatten", "Gather", "Gemm", "Identity", "MatMul", "Mul"),
    *("Pad", "ReduceMax", "ReduceSum", "Relu", "Reshape", "Shape", "Slice", "Squeeze", "Sub", "Tanh", "Transpose"),
    "Unsqueeze",
)
_ITEM = {1: "<f4", 6: "<i4", 7: "<i8", 9: "<?", 10: "<f2", 11: "<f8"}


def read_metadata(data: bytes, source: str) -> dict[str, str]:
    """The metadata of an ONNX file.

    Args:
        data: the whole file.
        source: what messages call it.

    Raises:
        ModelError: no ONNX file, or its metadata is not what `check_metadata` takes.
    """
    reader, metadata = _Reader(data, source), dict[str, str]()
    for number, _, start, end in reader.fields(0, len(data)):
        if number == _METADATA_FIELD:
            if len(metadata) == _MAX_ENTRIES:
                raise ModelError(f"{source} has more than {_MAX_ENTRIES} metadata entries")
            entry = {n: data[s:e] for n, _, s, e in reader.fields(start, end)}
            try:
                key, value = (entry.get(n, b"").decode() for n in (1, 2))
            except UnicodeDecodeError:
                raise ModelError(f"{source} has metadata that is no text") from None
            if key in metadata:
                raise ModelError(f"{source} has the metadata {key[:40]!r} twice")
            metadata[key] = value
    check_metadata(metadata, source)
    return metadata


def check_metadata(metadata: dict[str, str], source: str) -> None:
    """See that metadata is short text, which can be shown to anyone.

    Raises:
        ModelError: a key of more than 100 characters, a text of more than 40 000, or one with control characters other
            than the ends of lines; more than 100 entries.
    """
    if len(metadata) > _MAX_ENTRIES:
        raise ModelError(f"{source} has more than {_MAX_ENTRIES} metadata entries")
    for key, value in metadata.items():
        if len(key) > _MAX_KEY or len(value) > _MAX_VALUE:
            raise ModelError(f"{source} has metadata {key[:40]!r} of more than {_MAX_VALUE} characters")
        if not _UNPRINTABLE.isdisjoint(key + value):
            raise ModelError(f"{source} has metadata {key[:40]!r} with control characters")


def check_graph(data: bytes, source: str) -> None:
    """See that a file holds a plain network: known operators on numbers that stand in the file and are finite.

    Raises:
        ModelError: it holds anything else; the message says what.
    """
    _Reader(data, source).model()


class _Reader:
    """Walks a file once; counts what it meets."""

    def __init__(self, data: bytes, source: str) -> None:
        self._data, self._source, self._parts = data, source, 0

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """The fields of the message between two places: (number, value, 0, 0) or (number, -1, start, end)."""
        at = start
        while at < end:
            self._parts += 1
            if self._parts > _MAX_PARTS:
                raise self._refusal(f"more than {_MAX_PARTS} parts")
            tag, at = self._varint(at, end)
            number, wire = tag >> 3, tag & 7
            if wire == 0:
                value, at = self._varint(at, end)
                yield number, value, 0, 0
                continue
            if wire == 2:
                length, at = self._varint(at, end)
            elif wire in (1, 5):
                length = 8 if wire == 1 else 4
            else:
                raise ModelError(f"{self._source} is no ONNX file")
            if not 0 < number < 2**29 or length > end - at:
                raise ModelError(f"{self._source} is no ONNX file")
            yield number, -1, at, at + length
            at += length

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        """A number of 7 bits a byte, and the place behind it."""
        value = shift = 0
        while at < end and shift < 70:
            byte = self._data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
            shift += 7
        raise ModelError(f"{self._source} is no ONNX file")

    def _refusal(self, what: str) -> ModelError:
        return ModelError(f"{self._source} is refused: no Lifeline model has {what}")

    def _text(self, start: int, end: int) -> str:
        return self._data[start : min(end, start + 60)].decode(errors="replace")

    def _known(self, number: int, known: set[int], kind: str) -> None:
        if number not in known:
            raise self._refusal(f"field {number} in {kind}")

    def model(self) -> None:
        for number, _, start, end in self.fields(0, len(self._data)):
            self._known(number, _MODEL, "the file")
            if number == _GRAPH_FIELD:
                self._graph(start, end)
            elif number == _OPSET_FIELD:
                for n, _, s, e in self.fields(start, end):
                    if n == 1:
                        self._domain(self._text(s, e))

    def _domain(self, name: str) -> None:
        if name not in ("", "ai.onnx"):
            raise self._refusal(f"operators of {name!r}")

    def _graph(self, start: int, end: int) -> None:
        for number, _, s, e in self.fields(start, end):
            self._known(number, _GRAPH, "its graph")
            if number == 1:
                self._node(s, e)
            elif number == 5:
                self._tensor(s, e, weight=True)

    def _node(self, start: int, end: int) -> None:
        operator = ""
        for number, _, s, e in self.fields(start, end):
            self._known(number, _NODE, "a node")
            if number == 4:
                operator = self._text(s, e)
            elif number == 5:
                self._attribute(s, e)
            elif number == 7:
                self._domain(self._text(s, e))
        if operator not in OPERATORS:
            raise self._refusal(f"the operator {operator!r}")

    def _attribute(self, start: int, end: int) -> None:
        for number, _, s, e in self.fields(start, end):
            self._known(number, _ATTRIBUTE, "an attribute")
            if number == 5:
                self._tensor(s, e, weight=False)

    def _tensor(self, start: int, end: int, weight: bool) -> None:
        name, kind, shape, raw = "", 0, list[int](), b""
        for number, value, s, e in self.fields(start, end):
            self._known(number, _TENSOR, "a tensor")
            if number == 1:
                shape += self._numbers(s, e) if value < 0 else [value]
            elif number == 2:
                kind = value
            elif number == 8:
                name = self._text(s, e)
            elif number == 9:
                raw = self._data[s:e]
            elif number == 14 and value != 0:
                raise self._refusal(f"data outside the file: {name!r}")
        if kind not in _ITEM:
            raise self._refusal(f"numbers of type {kind}: {name!r}")
        item, size = np.dtype(_ITEM[kind]), 1
        for length in shape:
            size *= length
        if len(raw) != size * item.itemsize:
            raise self._refusal(f"{len(raw)} bytes for {size} numbers: {name!r}")
        if weight and item.kind == "f" and not np.isfinite(np.frombuffer(raw, item)).all():
            raise ModelError(f"{self._source} has weights that are not finite: {name!r}")

    def _numbers(self, start: int, end: int) -> list[int]:
        out = []
        while start < end:
            value, start = self._varint(start, end)
            out.append(value)
        return out
