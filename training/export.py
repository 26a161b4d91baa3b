"""From a network to the ONNX file that players download.

Tracing takes torch seconds, filling weights into a traced graph milliseconds: the graph is traced once for a shape of
network and kept in the user's cache, and every set of weights is filled into a copy.
"""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

import training.network
from lifeline.compiled import user_cache
from lifeline.errors import ModelError
from lifeline.files import write_atomic
from lifeline.model_file import FORMAT_KEY, INPUT, MODEL_FORMAT, OBSERVATION_KEY, OUTPUTS, seal
from lifeline.observation import OBSERVATION_VERSION, PLANES
from lifeline.onnx_file import check_metadata
from lifeline.version import __version__
from training.config import NetworkConfig
from training.network import Exportable, Network, planes_of

_PREFIX = "network."
_HALF = ".half"


def export_onnx(
    config: NetworkConfig, weights: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None, half: bool = False
) -> bytes:
    """One self-contained ONNX file for every board size, sealed with its checksum.

    Args:
        config: size of the network.
        weights: its state dict.
        metadata: entries to put in beside format and versions.
        half: store the weights as float16. They are turned into float32 when the file is loaded, and computed with as
            such.

    Raises:
        ModelError: the weights are not those of such a network, or cannot be stored; or metadata is no short text.
    """
    model = onnx.ModelProto()
    model.CopyFrom(_graph(config))
    casts = []
    for initializer in model.graph.initializer:
        if not initializer.name.startswith(_PREFIX):
            continue
        name = initializer.name
        tensor = weights.get(name.removeprefix(_PREFIX))
        if tensor is None or list(tensor.shape) != list(initializer.dims):
            raise ModelError(f"the weights do not fit the network: {name}")
        stored = name + _HALF if half else name
        initializer.CopyFrom(numpy_helper.from_array(_stored(tensor, name, half), stored))
        if half:
            casts.append(onnx.helper.make_node("Cast", [stored], [name], f"cast.{name}", to=onnx.TensorProto.FLOAT))
    if casts:
        nodes = [*casts, *model.graph.node]  # in the order in which they can be computed
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    entries = {
        FORMAT_KEY: str(MODEL_FORMAT),
        OBSERVATION_KEY: str(OBSERVATION_VERSION),
        "planes": ",".join(PLANES[number][0] for number in planes_of(config)),
        "network": config.model_dump_json(),
        "program": f"lifeline {__version__}",
        "precision": "float16 weights, computed in float32" if half else "float32",
        **(metadata or {}),
    }
    check_metadata(entries, "the model")
    for key, value in entries.items():
        model.metadata_props.add(key=key, value=value)
    return seal(bytes(model.SerializeToString()))


def _stored(tensor: Tensor, name: str, half: bool) -> npt.NDArray[Any]:
    """A weight as it is stored: float32, or float16."""
    full = tensor.detach().float().cpu()
    if not torch.isfinite(full).all():
        raise ModelError(f"the weights are not finite: {name}")
    if half and not torch.isfinite(full.half()).all():
        raise ModelError(f"float16 ends at 65504, the weight {name} reaches {float(full.abs().max()):.6g}")
    return np.asarray((full.half() if half else full).numpy())


@lru_cache(maxsize=8)
def _graph(config: NetworkConfig) -> onnx.ModelProto:
    """The traced graph of a network of this size, its weights arbitrary."""
    sources = Path(training.network.__file__).read_bytes() + Path(__file__).read_bytes()
    versions = f"{torch.__version__} {onnx.__version__} {planes_of(config)}"
    key = hashlib.sha256(sources + (config.model_dump_json() + versions).encode()).hexdigest()[:20]
    path = user_cache() / "graphs" / f"{key}.onnx"
    try:
        model = onnx.load_model_from_string(path.read_bytes())
        onnx.checker.check_model(model)
        return model
    except Exception:  # not there, or damaged: made anew either way
        pass
    model = _trace(config)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, model.SerializeToString())
    except OSError:  # the cache only saves time
        pass
    return model


def _trace(config: NetworkConfig) -> onnx.ModelProto:
    network = Exportable(Network(config)).eval()
    free = torch.export.Dim.DYNAMIC
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter's own code; the result is checked against torch by tests
        program = torch.onnx.export(
            network,
            (torch.rand(2, planes_of(config)[-1] + 1, 5, 5),),
            dynamo=True,
            verbose=False,
            optimize=False,  # would rename and merge the weights, which are to be filled in by name
            external_data=False,
            input_names=[INPUT],
            output_names=list(OUTPUTS),
            dynamic_shapes=({0: free, 2: free, 3: free},),
        )
    if program is None:
        raise ModelError("torch could not export the network")
    model = program.model_proto
    _strip(model)
    return model


def _strip(model: onnx.ModelProto) -> None:
    """Drop what the tracer notes about itself (source lines, paths), and give the free axes their names."""
    model.producer_name, model.producer_version, model.doc_string = "lifeline", __version__, ""
    del model.metadata_props[:]
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info, *model.graph.initializer]:
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    axes = {INPUT: ("batch", None, "height", "width"), "policy_grid": ("batch", "height", "width")}
    axes |= {"policy_global": ("batch", None), "value": ("batch",)}
    for value in [*model.graph.input, *model.graph.output]:
        for dim, name in zip(value.type.tensor_type.shape.dim, axes[value.name], strict=True):
            if name:
                dim.dim_param = name
    del model.graph.value_info[:]


def network_config_of(text: str) -> NetworkConfig:
    """The size of a network from a model's or checkpoint's `network` entry.

    Raises:
        ModelError: not such an entry.
    """
    try:
        return NetworkConfig.model_validate(json.loads(text))
    except ValueError:
        raise ModelError("the network entry is damaged") from None
