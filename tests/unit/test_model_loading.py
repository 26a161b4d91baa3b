"""Models are checked before they are run: every damage is found, every foreign or hostile file refused in one line."""

import contextlib
import io
import pickle
import zipfile

import numpy as np
import onnx
import pytest
import safetensors.numpy
import torch
from onnx import TensorProto, helper, numpy_helper

from lifeline import ModelError, Rules
from lifeline.model_file import FORMAT_KEY, MODEL_FORMAT, OBSERVATION_KEY, load_model, seal
from lifeline.observation import NUM_PLANES, OBSERVATION_VERSION
from lifeline.play.players import make_player
from lifeline.search.evaluator import OnnxEvaluator
from tiny_run import lifeline
from training.config import NetworkConfig
from training.export import export_onnx
from training.network import Network

TINY = NetworkConfig(blocks=1, channels=8, pool_every=1, head_channels=4, value_hidden=8)


@pytest.fixture(scope="module")
def good():
    torch.manual_seed(0)
    return export_onnx(TINY, Network(TINY).state_dict(), {"note": "kept, in any Schrift: ●"})


def refused(model, match):
    """The message by which a model is refused: one line."""
    with pytest.raises(ModelError, match=match) as caught:
        OnnxEvaluator(model)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    return str(caught.value)


def changed(good, change):
    """A model changed by its maker, so with a checksum that fits."""
    model = onnx.load_model_from_string(good)
    kept = [entry for entry in model.metadata_props if entry.key != "sha256"]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    change(model)
    return seal(model.SerializeToString())


def test_a_good_model_is_loaded_from_bytes_and_from_a_file(good, tmp_path):
    (tmp_path / "good.onnx").write_bytes(good)
    for model in (good, tmp_path / "good.onnx", str(tmp_path / "good.onnx")):
        assert OnnxEvaluator(model).metadata["note"] == "kept, in any Schrift: ●"
    onnx.checker.check_model(onnx.load_model_from_string(good))


def test_what_is_read_of_a_file_is_what_onnx_reads_of_it(good):
    model = onnx.load_model_from_string(good)
    assert load_model(good).metadata == {entry.key: entry.value for entry in model.metadata_props}


def test_the_checksum_is_the_one_of_all_but_the_last_64_bytes(good):
    import hashlib

    assert good[-64:].decode() == hashlib.sha256(good[:-64]).hexdigest()


def test_every_flipped_bit_is_found(good):
    """All bits of some bytes at either end, one bit of 300 bytes between."""
    size = len(good)
    whole = [*range(16), *range(size - 90, size)]
    cases = [(at, bit) for at in whole for bit in range(8)]
    cases += [(int(at), i % 8) for i, at in enumerate(np.linspace(0, size - 1, 300))]
    data = bytearray(good)
    for at, bit in cases:
        data[at] ^= 1 << bit
        with pytest.raises(ModelError, match=r"damaged|checksum"):
            OnnxEvaluator(bytes(data))
        data[at] ^= 1 << bit
    assert OnnxEvaluator(bytes(data)).metadata


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.9999])
def test_a_file_cut_short_is_named(good, tmp_path, share):
    path = tmp_path / "short.onnx"
    path.write_bytes(good[: int(share * len(good))])
    assert str(path) in refused(path, "cut short|damaged|no ONNX file")


def test_what_is_behind_the_end_is_found(good):
    refused(good + b"\0", "cut short")
    refused(good + good, "damaged")


def test_what_cannot_be_read_is_named(tmp_path):
    refused(tmp_path / "missing.onnx", r"cannot read .*missing\.onnx: No such file")
    refused(tmp_path, "but a directory; a run's model is the file bot.onnx in it")
    refused("/dev/zero", "is no file")
    refused("a\0b", "cannot read")
    (tmp_path / "empty.onnx").write_bytes(b"")
    refused(tmp_path / "empty.onnx", "empty.onnx is empty")
    refused(b"", "is empty")


def test_files_too_large_are_refused_without_being_read_to_the_end(tmp_path, monkeypatch):
    from lifeline import model_file

    monkeypatch.setattr(model_file, "MAX_BYTES", 2_000_000)
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(40_000_000_000)  # a hole: takes no room on the disk
    refused(path, "larger than any model: more than 2 MB")


def archive():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("archive/data.pkl", "x")
    return data.getvalue()


class Trap:
    """Runs code if it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (archive(), "a zip archive"),
        (pickle.dumps(Trap()), "a pickle"),
        (safetensors.numpy.save({"w": np.zeros(3)}), "a safetensors file"),
        (b"\x1f\x8b\x08" + bytes(40), "a gzip archive"),
        (b"\x18\0\0\0ORTM" + bytes(90), "a model in ONNX Runtime's own format"),
    ],
    ids=["zip", "pickle", "safetensors", "gzip", "ort"],
)
def test_files_of_other_kinds_are_named(data, kind):
    refused(data, f"no ONNX file but {kind}")


@pytest.mark.parametrize(
    "data",
    [b"hello", b"version https://git-lfs", b"\0" * 500, b"\xff" * 500, b"\x3a" * 500, bytes(range(256))],
    ids=range(6),
)
def test_what_is_no_onnx_file_is_refused(data):
    refused(data, "no ONNX file|no Lifeline model")


def foreign(nodes, inputs=None, outputs=None, initializers=(), opsets=()):
    """An ONNX file of somebody else's."""
    inputs = inputs or [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])]
    outputs = outputs or [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), *opsets])


def claimed(model):
    """The same with this project's metadata and a checksum that fits."""
    model.ir_version = 10
    helper.set_model_props(model, {FORMAT_KEY: str(MODEL_FORMAT), OBSERVATION_KEY: str(OBSERVATION_VERSION)})
    return seal(model.SerializeToString())


def test_a_foreign_onnx_file_is_no_lifeline_model():
    model = foreign([helper.make_node("Relu", ["x"], ["y"])])
    refused(model.SerializeToString(), "no Lifeline model: it has no lifeline_format")
    refused(seal(model.SerializeToString()), "no Lifeline model: it has no lifeline_format")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lifeline_format", "1", "lifeline_format '1'; this version reads 2; lifeline export makes one"),
        ("lifeline_format", "99", "lifeline_format '99'; this version reads"),
        ("observation_version", "99", "observation_version '99'; this version reads 2"),
        ("observation_version", "", "observation_version ''"),
    ],
)
def test_a_model_of_another_version_is_named(good, key, value, message):
    def change(model):
        next(e for e in model.metadata_props if e.key == key).value = value

    refused(changed(good, change), message)


def test_a_model_of_the_format_without_checksums_is_named_as_such(good):
    model = onnx.load_model_from_string(good)
    kept = [e for e in model.metadata_props if e.key != "sha256"]
    next(e for e in kept if e.key == "lifeline_format").value = "1"
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    refused(model.SerializeToString(), "lifeline_format '1'; this version reads 2")


def entry(key, value):
    return lambda model: model.metadata_props.add(key=key, value=value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (entry("note", "again"), "'note' twice"),
        (entry("sha256", "0" * 64), "'sha256' twice"),
        (entry("long", "x" * 40_001), "'long' of more than 40000 characters"),
        (entry("x" * 101, ""), "of more than"),
        (entry("bell", "\x07\x1b[2J"), "'bell' with control characters"),
        (lambda m: [m.metadata_props.add(key=str(i)) for i in range(200)], "more than 100 metadata entries"),
    ],
)
def test_metadata_is_short_text(good, change, message):
    refused(changed(good, change), message)


def test_metadata_that_is_no_text_is_refused(good):
    body = good[: good.rindex(b"sha256") - 4] + b"\x72\x08\x0a\x01a\x12\x03\xff\xfe\xff"
    refused(seal(body), "metadata that is no text")


def external(model):
    """A weight that lies in another file."""
    weight = model.graph.initializer[0]
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="/etc/passwd")
    weight.ClearField("raw_data")


def external_constant(model):
    node = next(n for n in model.graph.node if n.op_type == "Constant" and n.attribute[0].HasField("t"))
    node.attribute[0].t.data_location = TensorProto.EXTERNAL


def operator(name, domain=""):
    return lambda model: model.graph.node.append(helper.make_node(name, ["planes"], ["extra"], domain=domain))


def loop(model):
    body = helper.make_graph([], "body", [], [])
    model.graph.node.append(helper.make_node("Loop", ["", ""], ["extra"], body=body))


def hidden_graph(model):
    model.graph.node[0].attribute.append(helper.make_attribute("body", helper.make_graph([], "body", [], [])))


def function(model):
    model.functions.append(helper.make_function("", "Relu", ["x"], ["y"], [], [helper.make_opsetid("", 20)]))


def shape(*dims):
    def change(model):
        del model.graph.initializer[0].dims[:]
        model.graph.initializer[0].dims.extend(dims)

    return change


def weight(value, kind=np.float32):
    def change(model):
        old = model.graph.initializer[0]
        array = numpy_helper.to_array(old).astype(kind)
        array.flat[-1] = value
        old.CopyFrom(numpy_helper.from_array(array, old.name))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (external, "field 13 in a tensor"),
        (external_constant, "data outside the file"),
        (operator("If"), "the operator 'If'"),
        (operator("Range"), "the operator 'Range'"),
        (operator("Relu", "com.microsoft"), "operators of 'com.microsoft'"),
        (operator("EPContext", "com.microsoft"), "operators of 'com.microsoft'|'EPContext'"),
        (lambda m: m.opset_import.append(helper.make_opsetid("their.own", 1)), "operators of 'their.own'"),
        (loop, "field 6 in an attribute"),
        (hidden_graph, "field 6 in an attribute"),
        (function, "field 25 in the file"),
        (lambda m: m.training_info.add(), "field 20 in the file"),
        (lambda m: m.graph.sparse_initializer.add(), "field 15 in its graph"),
        (shape(2**62, 2**62), "bytes for"),
        (shape(-1), "bytes for"),
        (shape(1), "bytes for 1 numbers"),
        (weight(np.nan), "weights that are not finite: 'network.stem.weight'"),
        (weight(np.inf, np.float16), "weights that are not finite: 'network.stem.weight'"),
        (weight(1, np.complex64), "numbers of type 14"),
        (lambda m: m.graph.initializer[0].string_data.append(b"x"), "field 6 in a tensor"),
        (lambda m: [m.graph.node.add(op_type="Relu") for _ in range(110_000)], "more than 200000 parts"),
        (lambda m: m.graph.node.pop(), "no usable ONNX model"),
        (lambda m: m.graph.node[-1].input.append("nothing"), "no usable ONNX model"),
        (lambda m: setattr(m.graph.input[0], "name", "x"), "no usable ONNX model|does not take planes"),
        (lambda m: m.graph.output.pop(), "does not give policy_grid, policy_global, value"),
    ],
)
def test_models_that_hold_more_or_less_than_a_network_are_refused(good, change, message):
    refused(changed(good, change), message)


def net(value_of="v", planes=NUM_PLANES, name="planes", kind=TensorProto.FLOAT):
    """A model of the right names that is as small as can be: sums of the planes."""
    axes = numpy_helper.from_array(np.array([1, 2, 3]), "all")
    nodes = [
        helper.make_node("ReduceSum", [name, "one"], ["policy_grid"], keepdims=0),
        helper.make_node("ReduceSum", [name, "high"], ["two"], keepdims=0),
        helper.make_node("ReduceSum", [name, "all"], ["v"], keepdims=0),
        helper.make_node("Tanh", ["v"], ["t"]),
        helper.make_node("Slice", ["two2", "zero", "second", "last"], ["policy_global"]),
        helper.make_node("ReduceSum", ["two", "last"], ["two1"], keepdims=1),
        helper.make_node("Concat", ["two1", "two1"], ["two2"], axis=1),
        helper.make_node("Identity", [value_of], ["value"]),
    ]
    nodes.append(nodes.pop(4))
    constants = [
        numpy_helper.from_array(np.array(values), n)
        for n, values in (("one", [1]), ("high", [2, 3]), ("zero", [0]), ("second", [2]), ("last", [1]))
    ]
    outputs = [
        helper.make_tensor_value_info("policy_grid", TensorProto.FLOAT, ["batch", "height", "width"]),
        helper.make_tensor_value_info("policy_global", TensorProto.FLOAT, ["batch", 2]),
        helper.make_tensor_value_info("value", TensorProto.FLOAT, None),
    ]
    inputs = [helper.make_tensor_value_info(name, kind, ["batch", planes, "height", "width"])]
    return claimed(foreign(nodes, inputs, outputs, [axes, *constants]))


def test_any_network_of_the_right_signature_will_do():
    assert OnnxEvaluator(net("t")).run(np.zeros((3, NUM_PLANES, 7, 7), np.float32))[1].shape == (3, 2)


def test_a_model_may_see_the_first_planes_alone():
    planes = np.random.default_rng(0).normal(size=(3, NUM_PLANES, 7, 7)).astype(np.float32) / 100
    grid = OnnxEvaluator(net("t", planes=11)).run(planes)[0]
    assert np.allclose(grid, planes[:, :11].sum(axis=1), atol=1e-5)


def test_a_model_of_another_signature_is_refused():
    refused(net("t", name="input"), "does not take planes")
    refused(net("t", planes=NUM_PLANES + 1), "does not take planes")
    refused(net("t", planes="any"), "does not take planes")
    refused(net("t", kind=TensorProto.DOUBLE), "does not take planes|no usable ONNX model")


def test_outputs_that_are_no_judgement_are_found_on_loading():
    refused(net("v"), "a value outside -1 to 1")
    refused(net("policy_grid"), r"gives value as float32 \[2, 5, 5\] in place of \[2\]")


def test_numbers_that_are_not_finite_are_found_in_play():
    """Weights may be finite and what they come to not."""
    network = Network(TINY)
    with torch.no_grad():
        network.stem.weight[:, 1] = 3e38  # own stones: none on the boards a model is tried on when it is loaded
        network.stem.weight[:, 0] = 0.1
        network.policy_cells.weight.fill_(1e4)
    evaluator = OnnxEvaluator(export_onnx(TINY, network.state_dict()))
    planes = np.ones((2, NUM_PLANES, 5, 5), np.float32)
    with pytest.raises(ModelError, match="not finite in policy"):
        evaluator.run(planes)


def test_planes_that_do_not_fit_are_an_error_of_the_model(good):
    with pytest.raises(ModelError, match=r"fails on planes of shape \(2, 3, 5, 5\)"):
        OnnxEvaluator(good).run(np.zeros((2, 3, 5, 5), np.float32))


@pytest.mark.parametrize(("old", "new"), [(b"network.stem.bias", b"network.stem\x7fbias"), (b"batch", b"b\xe8tch")])
def test_names_that_are_no_text_do_not_reach_the_terminal(good, capfd, old, new):
    body = good[: good.rindex(b"sha256") - 4]
    message = refused(seal(body.replace(old, new, 1)), "no usable ONNX model|does not give|control characters")
    assert message.isprintable()
    assert capfd.readouterr() == ("", "")


def test_files_spoilt_on_purpose_are_refused_or_sound(good):
    """The checksum fits, so all depends on the other checks: nothing but models and refusals comes of them."""
    body, rng = good[: good.rindex(b"sha256") - 4], np.random.default_rng(5)
    for _ in range(80):
        data = bytearray(body)
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        with contextlib.suppress(ModelError):
            OnnxEvaluator(seal(bytes(data)))


def test_players_of_bad_models_are_refused_in_one_line(tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ModelError, match=r"x\.onnx is no ONNX file but a pickle"):
        make_player(str(path), Rules(3))


@pytest.mark.parametrize("name", ["x.onnx", "weights.pt"])
def test_play_names_what_is_wrong_with_a_model(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(archive())
    code, out, err = lifeline("play", "--model", path)
    assert (code, out) == (1, "")
    assert err == f"lifeline: {path} is no ONNX file but a zip archive, as torch.save and numpy.savez write; " + (
        "nothing in it was run\n"
    )
