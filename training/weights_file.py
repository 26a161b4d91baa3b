"""A network's weights with their metadata in one safetensors file: what training begins with elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from pydantic import ValidationError
from torch import Tensor

from lifeline.errors import CheckpointError
from lifeline.model_file import OBSERVATION_KEY
from lifeline.observation import OBSERVATION_VERSION
from lifeline.version import __version__
from training import checkpoint
from training.config import NetworkConfig
from training.equivariance import Tie
from training.network import Network, planes_of
from training.taps import ORDER

SUFFIX = ".safetensors"
STEM = "stem.weight"
"""The weights that look at the planes, [out, planes, 7]."""
_MAX_BYTES = 1_000_000_000
_DTYPES = ("F16", "BF16", "F32")


@dataclass(frozen=True)
class Weights:
    """Weights to begin with.

    Attributes:
        source: where they come from.
        network: the size of the network, as JSON values; None where a checkpoint does not say.
        tensors: float32, by name.
        entries: what a file of weights says of itself; empty for a checkpoint.
    """

    source: Path
    network: dict[str, Any] | None
    tensors: Mapping[str, Tensor]
    entries: Mapping[str, str] = field(default_factory=dict)

    def grown(self, network: NetworkConfig) -> Weights:
        """These, or where such a network sees more planes, has more blocks or keeps fewer symmetries, its weights.

        They say the same as these: they do not look at those planes yet, and those blocks, the last ones, do nothing
        yet.
        """
        try:
            own = NetworkConfig.model_validate(self.network)
        except ValidationError:
            return self
        before, now = planes_of(own), planes_of(network)
        may_differ = ("tactical_planes", "region_planes", "equivariance", "blocks")
        if own.model_copy(update={name: getattr(network, name) for name in may_differ}) != network:
            return self
        if not set(before) <= set(now) or own.blocks > network.blocks or STEM not in self.tensors:
            return self
        if ORDER[own.equivariance] % ORDER[network.equivariance]:
            return self
        old = self.tensors[STEM]
        if old.shape[1:] != (len(before), 7):
            return self
        stem = old.new_zeros(len(old), len(now), 7)
        stem[:, [now.index(plane) for plane in before]] = old
        tensors = {**_new_blocks(network, own.blocks), **self.tensors, STEM: stem}
        return replace(self, network=network.model_dump(mode="json"), tensors=tensors)

    def fit(self, network: NetworkConfig) -> None:
        """See that these are the weights of such a network.

        Raises:
            CheckpointError: they are not.
        """
        settings = network.model_dump(mode="json")
        if self.network != settings:
            own = NetworkConfig().model_dump(mode="json") | (self.network or {})
            other = ", ".join(
                f"{name} {own[name]}, not {value}" for name, value in settings.items() if own[name] != value
            )
            raise CheckpointError(f"{self.source} has another network than this run: {other[:300] or self.network}")
        wanted = {name: tensor.shape for name, tensor in Network(network).state_dict().items()}
        bad = next((n for n, shape in wanted.items() if n not in self.tensors or self.tensors[n].shape != shape), None)
        if bad is not None:
            raise CheckpointError(f"{self.source}: the weights do not fit this network: {bad}")


def _new_blocks(network: NetworkConfig, first: int) -> dict[str, Tensor]:
    """The weights of a new network's blocks from that one on, always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(network.blocks)
        fresh = Network(network).blocks
    found = {f"blocks.{n}.{name}": t for n in range(first, network.blocks) for name, t in fresh[n].state_dict().items()}
    tie = Tie(network.equivariance, {name: t.shape for name, t in found.items()})
    return {name: tie.first(name, t) for name, t in found.items()}


def export_weights(
    config: NetworkConfig, weights: Mapping[str, Tensor], metadata: Mapping[str, str], half: bool = False
) -> bytes:
    """A safetensors file of a network's weights, float16 if `half`, with text entries as an ONNX model has them."""
    entries = {
        OBSERVATION_KEY: str(OBSERVATION_VERSION),
        "network": config.model_dump_json(),
        "program": f"lifeline {__version__}",
        "precision": "float16" if half else "float32",
        **metadata,
    }
    dtype = torch.float16 if half else torch.float32
    tensors = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in weights.items()}
    return bytes(safetensors.torch.save(tensors, entries))


def find_weights(path: Path) -> Weights:
    """The weights of a file of `export_weights`, or of a checkpoint as `checkpoint.find` takes it.

    Raises:
        CheckpointError: there are none, or they are damaged or of another version.
    """
    if path.suffix != SUFFIX:
        found = checkpoint.find(path)
        return Weights(found.path, found.manifest.get("network"), found.weights())
    none = f"{path}: not the weights of a network of this project"
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise CheckpointError(f"{path}: larger than any network's weights")
        with safetensors.safe_open(path, "pt") as file:
            entries, names = file.metadata() or {}, list(file.keys())
            if any(file.get_slice(name).get_dtype() not in _DTYPES for name in names):
                raise CheckpointError(none)
            tensors = {name: file.get_tensor(name).float() for name in names}
        network = NetworkConfig.model_validate(json.loads(entries["network"])).model_dump(mode="json")
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or type(error).__name__}") from None
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"cannot read {path}: {ascii(str(error))[1:100]}") from None
    except (KeyError, ValueError, TypeError, RecursionError, RuntimeError):  # what torch makes of absurd shapes
        raise CheckpointError(none) from None
    version = entries.get(OBSERVATION_KEY)
    if version != str(OBSERVATION_VERSION):
        told = None if version is None else version[:20]
        raise CheckpointError(f"{path} has observation_version {told!r}; this version reads {OBSERVATION_VERSION}")
    bad = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if bad is not None:
        raise CheckpointError(f"{path}: the weights are not finite: {bad[:60]!r}")
    return Weights(path, network, tensors, entries)
