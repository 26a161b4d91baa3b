"""Checkpoints: whole or absent, verified, pruned without ever naming what is not there."""

import json

import numpy as np
import pytest
import torch

from lifeline import CheckpointError
from training import checkpoint


def save(folder, iteration=20):
    return checkpoint.save(
        folder,
        iteration,
        {"blocks": 1},
        {"w": torch.arange(4.0)},
        {"weights.w": torch.arange(4.0), "optimizer.step.w": torch.tensor(3.0)},
        {"replay": {"states": np.arange(6, dtype=np.uint64).reshape(2, 3), "flags": np.array([True, False])}},
        {"games": 7},
    )


def test_what_was_saved_is_loaded(tmp_path):
    loaded = checkpoint.load(save(tmp_path).path)
    assert loaded.iteration == 20
    assert loaded.counters == {"games": 7}
    assert loaded.weights()["w"].tolist() == [0, 1, 2, 3]
    assert float(loaded.learner_state()["optimizer.step.w"]) == 3
    arrays = loaded.arrays("replay")
    assert arrays["states"].dtype == np.uint64
    assert arrays["states"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["flags"].tolist() == [True, False]


@pytest.mark.parametrize("name", ["weights.safetensors", "learner.safetensors", "replay.safetensors"])
@pytest.mark.parametrize("at", [0, 30, -1])
def test_a_flipped_byte_is_found_and_named(tmp_path, name, at):
    path = save(tmp_path).path / name
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        checkpoint.load(path.parent)
    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        checkpoint.newest_whole(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format=2), "format 2"),
        (lambda m: m.update(observation_version=99), "observation version 99"),
        (lambda m: m.pop("files"), "damaged"),
        (lambda m: m.update(files=[1]), "damaged"),
        (lambda m: m.update(iteration="x"), "damaged"),
        (lambda m: m["files"].update({"../../etc/passwd": "0"}), "no file name"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path, change, message):
    path = save(tmp_path).path / checkpoint.MANIFEST
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=message):
        checkpoint.load(path.parent)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_manifest_that_is_none_is_refused(tmp_path, data):
    path = save(tmp_path).path
    (path / checkpoint.MANIFEST).write_bytes(data)
    with pytest.raises(CheckpointError):
        checkpoint.load(path)


def test_a_missing_checkpoint_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="is no checkpoint"):
        checkpoint.load(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match="no checkpoint to go on from"):
        checkpoint.newest_whole(tmp_path)


def test_an_unfinished_write_is_not_seen_and_is_cleared_away(tmp_path):
    save(tmp_path)
    (tmp_path / ".writing-1-iteration-00000040").mkdir()
    assert checkpoint.newest_whole(tmp_path).iteration == 20
    checkpoint.clean_up(tmp_path, 2, 200)
    assert [p.name for p in tmp_path.iterdir()] == ["iteration-00000020"]


def test_the_last_are_kept_whole_and_every_nth_for_its_weights(tmp_path):
    for iteration in range(20, 201, 20):
        save(tmp_path, iteration)
        checkpoint.clean_up(tmp_path, keep_last=2, keep_every=60)
    kept = [checkpoint.load(p) for p in checkpoint.list_all(tmp_path)]
    assert [c.iteration for c in kept] == [60, 120, 180, 200]
    assert [c.is_whole for c in kept] == [False, False, True, True]
    assert kept[0].weights()["w"].tolist() == [0, 1, 2, 3]
    with pytest.raises(CheckpointError, match="weights only"):
        kept[0].learner_state()
    assert sorted(p.name for p in kept[0].path.iterdir()) == ["manifest.json", "weights.safetensors"]


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot write"):
        save(tmp_path / "file")
