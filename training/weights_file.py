"""A network's weights with their metadata in one safetensors file: what training begins with elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from lifeline.errors import CheckpointError
from lifeline.model_file import OBSERVATION_KEY
from lifeline.observation import OBSERVATION_VERSION
from lifeline.version import __version__
from training import checkpoint
from training.config import NetworkConfig

SUFFIX = ".safetensors"
_MAX_BYTES = 1_000_000_000


@dataclass(frozen=True)
class Weights:
    """Weights to begin with.

    Attributes:
        source: where they come from.
        network: the size of the network, as JSON values.
        tensors: float32, by name.
    """

    source: Path
    network: object
    tensors: Mapping[str, Tensor]


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
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise CheckpointError(f"{path}: larger than any network's weights")
        with safetensors.safe_open(path, "pt") as file:
            entries = file.metadata() or {}
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        network = json.loads(entries["network"])
    except (OSError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except (KeyError, ValueError, RecursionError):
        raise CheckpointError(f"{path}: not the weights of a network of this project") from None
    version = entries.get(OBSERVATION_KEY)
    if version != str(OBSERVATION_VERSION):
        raise CheckpointError(f"{path} has observation_version {version!r}; this version reads {OBSERVATION_VERSION}")
    bad = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if bad is not None:
        raise CheckpointError(f"{path}: the weights are not finite: {bad[:60]!r}")
    return Weights(path, network, tensors)
