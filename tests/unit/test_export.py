"""`lifeline export`: what is written is the network it was made of, and says where it comes from; or nothing is."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import safetensors
import safetensors.torch
import torch
import typer
from onnx import TensorProto

import training.export
from lifeline import BatchEnv, CheckpointError, ModelError, Rules
from lifeline.commands.models import export
from lifeline.model_file import MODEL_FORMAT
from lifeline.observation import PLANES
from lifeline.onnx_file import OPERATORS
from lifeline.rules import OPENINGS
from lifeline.search.evaluator import OnnxEvaluator
from lifeline.version import __version__
from training import checkpoint, rundir, verify
from training.config import Config, GameConfig, LearnerConfig, NetworkConfig
from training.devices import describe_devices
from training.evaluation import RatingBook
from training.export import export_onnx
from training.learner import Learner
from training.network import Network, planes_of
from training.provenance import LICENCE, lineage
from training.ratings import Pair
from training.weights_file import Weights, export_weights, find_weights

ROOT = Path(__file__).parents[2]
TINY = NetworkConfig(blocks=1, channels=8, pool_every=1, head_channels=4, value_hidden=8, region_planes=True)
LESS = TINY.model_copy(update={"region_planes": False})
COUNTERS = {
    "games": 120,
    "samples": 2_400,
    "samples_used": 9_600,
    "learner_steps": 300,
    "seconds": 61.4,
    "device": "cpu",
    "generators": {},
}


def lively_weights(seed=0, config=TINY):
    """Weights of which every one matters: a new network's blocks do nothing yet."""
    torch.manual_seed(seed)
    network = Network(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return network.state_dict()


@pytest.fixture(scope="module")
def few():
    """Two positions of each base and opening."""
    return verify.real_positions(60)


@pytest.fixture
def few_positions(monkeypatch, few):
    """Comparisons over those, where something else is tested."""
    monkeypatch.setattr(verify, "real_positions", lambda: few)


def save(folder, iteration=40, weights=None, network=None, counters=None):
    """A checkpoint of a tiny network, in a folder of checkpoints."""
    sizes = TINY.model_dump(mode="json") if network is None else network
    state = lively_weights() if weights is None else weights
    return checkpoint.save(folder, iteration, sizes, state, {}, {}, COUNTERS if counters is None else counters).path


def make_run(folder, begins_with=None, **settings):
    """A run's directory with a checkpoint and rating games."""
    weights = None if begins_with is None else find_weights(begins_with)
    origin = () if weights is None else (str(weights.source), lineage(weights))
    rundir.create(Config(network=TINY, **settings), folder, *origin).close()
    save(folder / rundir.CHECKPOINTS, 20)
    save(folder / rundir.CHECKPOINTS, 40)
    book = RatingBook(folder / rundir.RATINGS_FILE)
    book.add([Pair("iteration-00000016", "random", ((True, True), (False, True)))] * 9)
    book.add([Pair("iteration-00000032", "iteration-00000016", ((True, True), (False, False)))] * 7)
    book.add([Pair("iteration-00000032", "random", ((True, True), (False, True)))] * 8)
    return folder


def run_export(source, out, **options):
    export(source, out, **{"half": False, "licence": None, "note": None, **options})
    return OnnxEvaluator(out).metadata


def test_positions_are_of_all_boards_and_openings_and_exercise_every_plane():
    positions = verify.real_positions()
    assert [(part.base, len(part)) for part in positions] == [(base, 100) for base in range(3, 13)]
    for part in positions:
        openings = [name.split()[0] for name in part.names]
        assert {openings.count(opening) for opening in OPENINGS} == {33, 34}
        assert part.legal.any(axis=1).all()
        assert len(set(part.names)) > 90
    for plane in range(positions[0].planes.shape[1]):
        assert any(part.planes[:, plane].any() for part in positions)


def test_a_run_is_exported_with_all_that_is_known_of_it(tmp_path, capsys):
    run = make_run(tmp_path / "run")
    metadata = run_export(run, tmp_path / "bot.onnx", note="of a test")
    out = capsys.readouterr().out
    assert re.search(r"1000 positions of bases 3 to 12 and 3 openings, batches of 1, 7, 256: largest difference", out)
    assert re.search(r"bot\.onnx: iteration-00000040, 1 blocks of 8, 0\.\d\d MB", out)
    known = {
        "program": f"lifeline {__version__}",
        "precision": "float32",
        "licence": "MIT",
        "note": "of a test",
        "iterations": "40",
        "games": "120",
        "samples": "2400",
        "samples_used": "9600",
        "learner_steps": "300",
        "training_seconds": "61",
        "learner_device": "cpu",
        "bases_trained": "3",
        "opening_trained": "strong_pie",
    }
    assert {key: metadata[key] for key in known} == known
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["date"])
    assert NetworkConfig.model_validate_json(metadata["network"]) == TINY
    rating = json.loads(metadata["rating"])
    assert rating["model"] == "iteration-00000032"
    assert rating["games"] == 30
    assert rating["interval_95"][0] <= rating["elo"] <= rating["interval_95"][1]
    assert rating["simulations"] == 64
    assert rating["scale"] == "Elo among the players of this run, random = 0"
    assert [p.name for p in tmp_path.iterdir() if p.name != "run"] == ["bot.onnx"]


def test_an_older_checkpoint_is_not_given_the_rating_of_a_newer_model(tmp_path, few_positions):
    run = make_run(tmp_path / "run", game=GameConfig(base=4, opening="komi_pie", komi=3))
    metadata = run_export(run / "checkpoints" / "iteration-00000020", tmp_path / "bot.onnx")
    assert json.loads(metadata["rating"])["model"] == "iteration-00000016"
    assert (metadata["bases_trained"], metadata["komi_trained"]) == ("4", "3")
    assert metadata["adjacent_setup_trained"] == "allowed"


def test_of_a_checkpoint_alone_only_what_it_says_itself_is_told(tmp_path, few_positions):
    metadata = run_export(save(tmp_path), tmp_path / "bot.onnx", licence="CC0-1.0")
    assert metadata["games"] == "120"
    assert metadata["licence"] == "CC0-1.0"
    assert not {"bases_trained", "opening_trained", "rating", "note", "half_difference"} & set(metadata)
    metadata = run_export(save(tmp_path, counters={}), tmp_path / "bot.onnx")
    assert not {"games", "training_seconds", "learner_device"} & set(metadata)


def test_the_licence_is_the_one_of_this_project():
    assert (ROOT / "LICENSE").read_text().startswith(f"{LICENCE} License")


def test_devices_are_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device.index}")
    assert describe_devices([torch.device("cpu")], torch.float32) == "cpu, float32"
    gpus = [torch.device("cuda", 1), torch.device("cuda", 0)]
    assert describe_devices(gpus, torch.bfloat16) == "2 x GPU 1, bfloat16"


def bias_moved(config, weights, metadata=None, half=False):
    """An exporter that gets one number slightly wrong."""
    return export_onnx(config, weights | {"value_out.bias": weights["value_out.bias"] + 1e-3}, metadata, half)


def other_weights(config, weights, metadata=None, half=False):
    return export_onnx(config, lively_weights(seed=1), metadata, half)


@pytest.mark.parametrize("wrong", [bias_moved, other_weights])
@pytest.mark.parametrize("half", [False, True])
def test_a_model_that_is_not_the_network_is_not_written(tmp_path, monkeypatch, few_positions, wrong, half):
    monkeypatch.setattr(training.export, "export_onnx", wrong)
    source, out = save(tmp_path / "checkpoints"), tmp_path / "bot.onnx"
    message = r"not the network it was made of: they differ by [\d.e-]+ \(\w+, base \d+, batch of \d+\)"
    with pytest.raises(ModelError, match=message) as caught:
        run_export(source, out, half=half)
    assert "\n" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoints"]
    out.write_bytes(b"the old one")
    with pytest.raises(ModelError, match=message):
        run_export(source, out, half=half)
    assert out.read_bytes() == b"the old one"
    assert {p.name for p in tmp_path.iterdir()} == {"checkpoints", "bot.onnx"}


def test_the_largest_difference_is_the_one_that_is_named(few):
    positions = few
    weights = lively_weights()
    wanted = verify.judge(positions, TINY, weights)
    model = export_onnx(TINY, weights)
    near = verify.compare(model, positions, wanted)
    assert near.difference < 1e-5
    wanted[4].policy_global[3, 1] += 3e-5 * (1 + abs(wanted[4].policy_global[3, 1]))
    moved = verify.compare(model, positions, wanted)
    assert moved.difference == pytest.approx(3e-5, rel=0.3)
    assert moved.where.startswith("policy_global, base 7, batch of ")
    wanted[9].value[5] = np.nan
    with pytest.raises(ModelError, match=r"\(value, base 12, batch of 1\)") as caught:
        verify.compare(model, positions, wanted)
    assert positions[9].names[5] in str(caught.value)


def test_rounding_is_allowed_for_where_logits_are_huge(few):
    """Weights that have grown without bounds cannot be computed twice alike; a wrong model is still found out."""
    weights = {name: tensor * 40 if "weight" in name else tensor for name, tensor in lively_weights().items()}
    wanted = verify.judge(few, TINY, weights)
    assert max(abs(judgement.policy_cells).max() for judgement in wanted) > 1e4
    found = verify.compare(export_onnx(TINY, weights), few, wanted)
    assert found.difference <= found.allowed
    for judgement in wanted:
        judgement.policy_cells[...] *= 1.02
    with pytest.raises(ModelError, match="not the network it was made of"):
        verify.compare(export_onnx(TINY, weights), few, wanted)


def test_a_network_whose_answers_are_no_numbers_is_like_no_model(few):
    weights = {name: tensor * 1e12 if "weight" in name else tensor for name, tensor in lively_weights().items()}
    wanted = verify.judge(few, TINY, weights)
    assert any(not np.isfinite(judgement.policy_cells).all() for judgement in wanted)
    with pytest.raises(ModelError, match="not the network it was made of"):
        verify.compare(export_onnx(TINY, lively_weights()), few, wanted)


def test_logits_of_illegal_cells_are_not_compared(few):
    positions = few
    wanted = verify.judge(positions, TINY, lively_weights())
    for part, judgement in zip(positions, wanted, strict=True):
        judgement.policy_cells[~part.legal[:, :-2]] = np.nan
    verify.compare(export_onnx(TINY, lively_weights()), positions, wanted)


def test_progress_rises_to_the_end(few):
    weights, shares = lively_weights(), []
    verify.compare(export_onnx(TINY, weights), few, verify.judge(few, TINY, weights), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def weight_bytes(path):
    return sum(len(initializer.raw_data) for initializer in onnx.load_model(path).graph.initializer)


def test_half_models_store_float16_and_compute_in_float32(tmp_path, capsys, few, few_positions):
    source = save(tmp_path)
    full, half = tmp_path / "full.onnx", tmp_path / "half.onnx"
    run_export(source, full)
    metadata = run_export(source, half, half=True)
    assert "float16 against float32 weights on 60 positions: value " in capsys.readouterr().out
    assert metadata["precision"] == "float16 weights, computed in float32"
    model = onnx.load_model(half)
    assert {i.data_type for i in model.graph.initializer} == {TensorProto.FLOAT16}
    assert 2 * weight_bytes(half) == weight_bytes(full)
    onnx.checker.check_model(model)
    # The same bits as a float32 model of the rounded weights, not merely close ones.
    planes = few[0].planes
    rounded = OnnxEvaluator(export_onnx(TINY, verify.rounded(lively_weights())))
    for got, want in zip(OnnxEvaluator(half).run(planes), rounded.run(planes), strict=True):
        assert (got == want).all()
    difference = json.loads(metadata["half_difference"])
    assert difference["positions"] == 60
    assert 0 < difference["value_mean"] < difference["value_max"] < 0.02
    assert 0 < difference["policy_mean"] < difference["policy_max"] < 0.02
    assert 0.9 < difference["same_move"] <= 1


def test_the_difference_of_half_weights_is_measured_as_it_says(few):
    positions = few[:1]
    part = positions[0]
    count, cells = len(part), part.legal.shape[1] - 2
    one = verify.Judgement(np.zeros((count, cells), "f4"), np.zeros((count, 2), "f4"), np.zeros(count, "f4"))
    shifted = one.policy_cells.copy()
    row, (first, second) = 0, np.flatnonzero(part.legal[0, :cells])[:2]
    shifted[row, second] = 50  # all of the policy on the second legal cell
    values = np.zeros(count, "f4")
    values[1] = -0.5
    found = verify.half_difference(positions, [one], [verify.Judgement(shifted, one.policy_global, values)])
    assert found.value_max == 0.5
    assert found.value_mean == pytest.approx(0.5 / count)
    assert found.policy_max == pytest.approx(1 - 1 / part.legal[0].sum())
    assert found.policy_mean == pytest.approx(found.policy_max / count)
    assert found.same_move == pytest.approx(1 - 1 / count)
    assert first != second


def test_weights_beyond_float16_are_refused_by_name(tmp_path, few_positions):
    weights = lively_weights()
    weights["value_hidden.weight"][0, 0] = 70_000
    source, out = save(tmp_path, weights=weights), tmp_path / "bot.onnx"
    with pytest.raises(
        ModelError, match=r"float16 ends at 65504, the weight network\.value_hidden\.weight reaches 70000"
    ):
        run_export(source, out, half=True)
    assert not out.exists()
    run_export(source, out)


def test_weights_that_are_not_finite_are_refused_by_name(tmp_path):
    weights = lively_weights()
    weights["stem.bias"][3] = np.nan
    with pytest.raises(ModelError, match=r"the weights are not finite: network\.stem\.bias"):
        run_export(save(tmp_path, weights=weights), tmp_path / "bot.onnx")


def test_a_place_that_cannot_be_written_is_named_before_the_work(tmp_path):
    source = save(tmp_path / "checkpoints")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ModelError, match=r"cannot write .*folder\.onnx: it is a directory"):
        run_export(source, tmp_path / "folder.onnx")
    with pytest.raises(ModelError, match="there is no such directory"):
        run_export(source, tmp_path / "missing" / "bot.onnx")
    with pytest.raises(typer.BadParameter, match=r"must end in \.onnx"):
        run_export(source, tmp_path / "bot.pt")


def test_checkpoints_that_cannot_be_used_are_named(tmp_path, few_positions):
    out = tmp_path / "bot.onnx"
    with pytest.raises(CheckpointError, match="is no checkpoint and holds none"):
        run_export(tmp_path / "nothing", out)
    with pytest.raises(ModelError, match="the network entry is damaged"):
        run_export(save(tmp_path, 1, network={"blocks": "many"}), out)
    with pytest.raises(ModelError, match="the weights do not fit the network"):
        run_export(save(tmp_path, 2, weights=lively_weights() | {"stem.bias": torch.zeros(9)}), out)
    with pytest.raises(ModelError, match="the weights do not fit the network"):
        run_export(save(tmp_path, 3, weights=lively_weights() | {"extra": torch.zeros(2)}), out)
    with pytest.raises(CheckpointError, match="its counter games is no number but 'many'"):
        run_export(save(tmp_path, 4, counters={"games": "many"}), out)
    path = save(tmp_path, 5)
    (path / checkpoint.WEIGHTS).write_bytes(b"x" * 99)
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is damaged"):
        run_export(path, out)
    assert not out.exists()


def test_a_checkpoint_whose_sums_fit_but_whose_weights_are_none_is_named(tmp_path):
    import hashlib

    path = save(tmp_path)
    (path / checkpoint.WEIGHTS).write_bytes(b"x" * 99)
    manifest = json.loads((path / checkpoint.MANIFEST).read_text())
    manifest["files"][checkpoint.WEIGHTS] = hashlib.sha256(b"x" * 99).hexdigest()
    (path / checkpoint.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is damaged"):
        run_export(path, tmp_path / "bot.onnx")


@pytest.mark.parametrize("note", ["\x1b[31mred", "x" * 40_001])
def test_a_note_is_short_text(tmp_path, note):
    with pytest.raises(ModelError, match="the model has metadata 'note'"):
        run_export(save(tmp_path), tmp_path / "bot.onnx", note=note)


@pytest.mark.parametrize("config", [TINY, LESS])
def test_the_documentation_tells_the_truth(tmp_path, monkeypatch, config):
    """Its code runs, its tables are those of the program."""
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    (tmp_path / "bot.onnx").write_bytes(export_onnx(config, lively_weights(config=config)))
    monkeypatch.chdir(tmp_path)
    known: dict = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "models.md", "exec"), known)
    assert known["values"].shape == (16,)
    # The planes written there by hand are those of the start, so the model says the same of both.
    start = BatchEnv(Rules(3), 1)
    assert (known["planes"] == start.observation[:, : planes_of(config)[-1] + 1]).all()
    for got, want in zip(
        (known["policy_grid"], known["value"]), known["model"].run(start.observation)[::2], strict=True
    ):
        assert (got == want).all()
    rows = [f"| {number} | `{name}` | {meaning} |" for number, (name, meaning) in enumerate(PLANES)]
    assert "\n".join(rows) in text
    assert f"{len(OPERATORS)} operators" in text
    assert f"`lifeline_format` | {MODEL_FORMAT}:" in text


def written(path, weights=None, metadata=(), half=False):
    path.write_bytes(export_weights(TINY, lively_weights() if weights is None else weights, dict(metadata), half))
    return path


@pytest.mark.parametrize("less", [{"region_planes": False}, {"tactical_planes": False}])
def test_weights_are_grown_for_a_network_that_sees_more(tmp_path, few, less):
    """It says the same until it has learnt what the new planes are worth."""
    path, narrow = tmp_path / "less.safetensors", TINY.model_copy(update=less)
    path.write_bytes(export_weights(narrow, lively_weights(config=narrow), {}))
    found = find_weights(path)
    wide = found.grown(TINY)
    wide.fit(TINY)
    assert wide.network == TINY.model_dump(mode="json")
    models = [OnnxEvaluator(export_onnx(c, w.tensors)) for c, w in ((narrow, found), (TINY, wide))]
    for part in few:
        for got, want in zip(models[0].run(part.planes), models[1].run(part.planes), strict=True):
            assert np.allclose(got, want, atol=1e-5)
    assert torch.equal(found.grown(narrow).tensors["stem.weight"], found.tensors["stem.weight"])
    for other in (narrow.model_copy(update={"channels": 2 * TINY.channels}), NetworkConfig(tactical_planes=False)):
        assert found.grown(other) is found


def learner_of(network):
    return Learner([Rules(3)], network, LearnerConfig(), np.random.default_rng(0), 0, torch.device("cpu"))


@pytest.mark.parametrize("equivariance", ["none", "turns"])
def test_weights_are_grown_for_a_network_of_more_blocks(few, equivariance):
    """It says the same until its new blocks have learnt something, which they can; it cannot lose some."""
    short = TINY.model_copy(
        update={"equivariance": equivariance, "channels": 12, "head_channels": 12, "value_hidden": 12}
    )
    network = short.model_copy(update={"blocks": short.blocks + 3})
    begun = Weights(Path("x"), short.model_dump(mode="json"), learner_of(short).average_weights())
    grown = begun.grown(network)
    grown.fit(network)
    learner_of(network).start_from(grown.tensors)
    new = {name: t for name, t in grown.tensors.items() if name not in begun.tensors}
    assert {name.split(".")[1] for name in new} == {str(short.blocks + n) for n in range(3)}
    assert all(t.any() == ("second" not in name) for name, t in new.items() if t.ndim > 1)
    again = begun.grown(network).tensors
    assert all(torch.equal(t, again[name]) for name, t in new.items())
    models = [OnnxEvaluator(export_onnx(c, w.tensors)) for c, w in ((short, begun), (network, grown))]
    for part in few:
        for got, want in zip(models[0].run(part.planes), models[1].run(part.planes), strict=True):
            assert np.allclose(got, want, atol=1e-5)
    assert grown.grown(short) is grown


def test_weights_are_found_again_in_files_and_checkpoints(tmp_path):
    path = written(tmp_path / "some.safetensors")
    found = find_weights(path)
    assert (found.source, found.network) == (path, TINY.model_dump(mode="json"))
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in lively_weights().items())
    half = find_weights(written(tmp_path / "half.safetensors", half=True)).tensors
    for name, tensor in lively_weights().items():
        assert half[name].dtype == torch.float32
        assert torch.equal(half[name], tensor.half().float())
    run = make_run(tmp_path / "run")
    found = find_weights(run)
    assert found.source.name == "iteration-00000040"
    assert found.network == TINY.model_dump(mode="json")


def test_models_tell_of_the_runs_whose_weights_they_began_with(tmp_path, few_positions):
    first = make_run(tmp_path / "first", seed=0)
    export(first, tmp_path / "first.safetensors", half=True, licence=None, note=None)
    second = make_run(tmp_path / "second", tmp_path / "first.safetensors", seed=1)
    entries = run_export(make_run(tmp_path / "third", second), tmp_path / "bot.onnx", half=True)
    assert entries["command"] == "lifeline train config.yaml --init-from iteration-00000040"
    steps = json.loads(entries["begun_with"])
    assert [step["seed"] for step in steps] == ["0", "1"]
    assert [step["command"] for step in steps] == [
        "lifeline train config.yaml",
        "lifeline train config.yaml --init-from first.safetensors",
    ]
    for i, step in enumerate(steps):
        assert step["config"] == Config(seed=i, network=TINY).model_dump(mode="json")
        assert step["games"] == "120"
    assert lineage(find_weights(first))[0]["config"] == steps[0]["config"]


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"config": "no JSON"},
        {"config": "[1]"},
        {"config": "[" * 5_000},
        {"config": json.dumps({"a": "b" * 9_000})},
        {"config": "no JSON", "begun_with": '[{"config":{}}]'},  # the last link is missing
    ],
)
def test_an_origin_that_is_not_understood_is_left_out(tmp_path, entries):
    assert lineage(find_weights(written(tmp_path / "some.safetensors", metadata=entries))) == []


@pytest.mark.parametrize(
    "text", ["5", "[" * 30_000, '["a"]', '[{"seed":"1"}]', '[{"config":{}},5]', " " * 50_000 + "[]"]
)
def test_earlier_runs_that_are_not_understood_are_left_out(tmp_path, text):
    metadata = {"config": '{"seed":1}', "begun_with": text}
    steps = lineage(find_weights(written(tmp_path / "some.safetensors", metadata=metadata)))
    assert steps == [{"config": {"seed": 1}}]


def test_what_files_of_strangers_say_of_their_origin_is_cut_short(tmp_path):
    config = Config().model_dump(mode="json")
    step = {"config": config, "commit": "\\" * 200, "command": "x" * 201, "seed": "\x1b", "games": 5, "other": 1}
    text = json.dumps([{**step, "iterations": str(i)} for i in range(15)], separators=(",", ":"))
    metadata = {"config": "{}", "begun_with": text}
    steps = lineage(find_weights(written(tmp_path / "some.safetensors", metadata=metadata)))
    assert steps[-2:] == [{"config": config, "commit": "\\" * 200, "iterations": "14"}, {"config": {}}]
    assert 5 < len(steps) <= 16
    assert all(step.keys() == {"config", "commit", "iterations"} for step in steps[:-1])
    run, facts = make_run(tmp_path / "run"), {"begun_with": steps * 10}
    (run / "run.json").write_text(json.dumps(facts))
    assert len(run_export(run, tmp_path / "bot.onnx", half=True)["begun_with"]) <= 38_000


def test_a_damaged_run_does_not_keep_its_weights_from_others(tmp_path):
    run = make_run(tmp_path / "run")
    (run / "config.yaml").write_text("no_such_key: 1\n")
    (run / "ratings.jsonl").write_text("damaged\n")
    assert lineage(find_weights(run)) == []


@pytest.mark.parametrize("half", [False, True])
def test_export_writes_them_with_all_that_is_known(tmp_path, capsys, few_positions, half):
    run, path = make_run(tmp_path / "run"), tmp_path / "bot.safetensors"
    export(run, path, half=half, licence=None, note="of a test")
    assert "bot.safetensors: iteration-00000040, 1 blocks of 8" in capsys.readouterr().out
    with safetensors.safe_open(path, "pt") as file:
        entries = file.metadata()
        assert file.get_tensor("stem.weight").dtype == (torch.float16 if half else torch.float32)
    assert entries["precision"] == ("float16" if half else "float32")
    assert ("half_difference" in entries) == half
    assert (entries["note"], entries["games"], entries["command"]) == ("of a test", "120", "lifeline train config.yaml")
    assert find_weights(path).network == TINY.model_dump(mode="json")
    with pytest.raises(typer.BadParameter, match="must end in"):
        export(run, tmp_path / "bot.bin", half=half, licence=None, note=None)


def test_a_file_of_weights_makes_the_model_it_could_have_been(tmp_path, few_positions):
    run, path = make_run(tmp_path / "run"), tmp_path / "some.safetensors"
    export(run, path, half=False, licence="CC0-1.0", note="of a test")
    direct = run_export(run, tmp_path / "direct.onnx", half=True, licence="CC0-1.0", note="of a test")
    entries = run_export(path, tmp_path / "bot.onnx", half=True)
    assert entries.keys() == direct.keys()
    assert {key for key in direct if entries[key] != direct[key]} <= {"date", "sha256"}
    bots = [OnnxEvaluator(tmp_path / name) for name in ("bot.onnx", "direct.onnx")]
    for got, want in zip(*(bot.evaluate(BatchEnv(Rules(4), 8)) for bot in bots), strict=True):
        assert (got == want).all()
    entries = run_export(path, tmp_path / "other.onnx", licence="MIT", note="another")
    assert (entries["licence"], entries["note"], entries["precision"]) == ("MIT", "another", "float32")
    assert "half_difference" not in entries
    entries = run_export(written(tmp_path / "bare.safetensors"), tmp_path / "bare.onnx")
    assert (entries["licence"], entries["network"]) == ("MIT", TINY.model_dump_json())


def crafted(dtype, shape, size):
    """A safetensors file of one tensor that no library would write."""
    head = f'{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{size}]}}}}'.encode()
    return len(head).to_bytes(8, "little") + head + bytes(size)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b""), "cannot read"),
        (lambda path: path.write_bytes(pickle.dumps({"network": 1})), "cannot read"),
        (lambda path: path.write_bytes(written(path).read_bytes()[:-100]), "cannot read"),
        (lambda path: path.mkdir(), "cannot read"),
        (lambda path: None, "cannot read .* No such file"),
        (lambda path: safetensors.torch.save_file({"a": torch.zeros(2)}, path), "not the weights of a network"),
        (lambda path: safetensors.torch.save_file({"a": torch.zeros(2)}, path, {"network": "["}), "not the weights"),
        (lambda path: written(path, metadata={"observation_version": "1"}), "has observation_version '1'"),
        (lambda path: written(path, metadata={"observation_version": "1" * 10**6}), "has observation_version '1{20}';"),
        (lambda path: written(path, metadata={"network": "5"}), "not the weights of a network"),
        (lambda path: safetensors.torch.save_file({"a": torch.zeros(2, dtype=torch.int64)}, path), "not the weights"),
        (lambda path: path.write_bytes(crafted("F4", [2], 1)), "not the weights|cannot read"),
        (lambda path: path.write_bytes(crafted("F32", [0, 2**63], 0)), "not the weights|cannot read"),
        (lambda path: path.write_bytes(crafted("F32", [1] * 200, 4)), "not the weights|cannot read"),
        (lambda path: path.write_bytes(crafted("\\n\\u001b[31m", [1], 4)), "cannot read"),
        (lambda path: written(path, lively_weights() | {"stem.bias": torch.full((8,), np.nan)}), "are not finite"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, make, message):
    path = tmp_path / "some.safetensors"
    make(path)
    with pytest.raises(CheckpointError, match=message) as raised:
        find_weights(path)
    assert str(path) in str(raised.value)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < len(str(path)) + 200
