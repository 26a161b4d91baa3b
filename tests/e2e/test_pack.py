"""A run moved elsewhere, begun from another's weights, or gone on with under other settings."""

import io
import json
import tarfile

import pytest
import safetensors.numpy
import yaml

from tiny_run import TINY, lifeline, write_config
from training import checkpoint


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A tiny run that has ended, and its file."""
    folder = tmp_path_factory.mktemp("packed")
    code, _, err = lifeline("train", write_config(folder), "--run-dir", folder / "run")
    assert code == 0, err
    code, out, err = lifeline("pack", folder / "run", "--out", folder / "run.tar.gz")
    assert code == 0, err
    assert "MB" in out
    return folder / "run", folder / "run.tar.gz"


def newest(run):
    return checkpoint.newest_whole(run / "checkpoints")


def test_a_packed_run_goes_on_as_the_run_itself_would(whole_run, tmp_path):
    run, file = whole_run
    moved = tmp_path / "moved"
    code, out, err = lifeline("train", "--resume", file, "--run-dir", moved, "--set", "max_iterations=12")
    assert code == 0, err
    assert "after iteration 8" in out
    import shutil

    stayed = tmp_path / "stayed"
    shutil.copytree(run, stayed)
    code, out, err = lifeline("train", "--resume", stayed, "--set", "max_iterations=12")
    assert code == 0, err
    assert newest(moved).iteration == newest(stayed).iteration == 12
    assert newest(moved).manifest["files"] == newest(stayed).manifest["files"]


@pytest.mark.slow
def test_changed_settings_are_kept_and_fixed_ones_refused(whole_run, tmp_path):
    import shutil

    run = tmp_path / "run"
    shutil.copytree(whole_run[0], run)
    settings = ["--set", "max_iterations=9", "--set", "learner.learning_rate=0.001"]
    code, _, err = lifeline("train", "--resume", run, *settings)
    assert code == 0, err
    assert yaml.safe_load((run / "config.yaml").read_text())["learner"]["learning_rate"] == 0.001
    for setting in ("game.base=4", "network.channels=18", "seed=9"):
        code, _, err = lifeline("train", "--resume", run, "--set", setting)
        assert code == 1
        assert "cannot change in a run that has begun" in err
        assert err.count("\n") == 1


@pytest.mark.slow
def test_a_run_begins_from_the_weights_of_another(whole_run, tmp_path):
    settings = ["--set", "max_iterations=0", "--set", "evaluation.games=0", "--run-dir", tmp_path / "run"]
    code, _, err = lifeline("train", write_config(tmp_path), "--init-from", whole_run[0], *settings)
    assert code == 0, err
    theirs, ours = newest(whole_run[0]).weights(), newest(tmp_path / "run").weights()
    assert all((theirs[name] == ours[name]).all() for name in theirs)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["init_from"] == str(newest(whole_run[0]).path)
    wide = TINY["network"] | {"channels": 18}
    settings[-1] = tmp_path / "other"
    code, _, err = lifeline("train", write_config(tmp_path, network=wide), "--init-from", whole_run[0], *settings)
    assert code == 1
    assert "another network" in err
    code, _, err = lifeline("train", write_config(tmp_path), "--init-from", tmp_path, *settings)
    assert code == 1
    assert "is no checkpoint" in err


@pytest.mark.slow
def test_a_run_begins_with_the_weights_of_a_file(tmp_path):
    path = tmp_path / "some.safetensors"
    settings = ["--set", "max_iterations=0", "--set", "evaluation.games=0"]
    code, _, err = lifeline("train", write_config(tmp_path), *settings, "--run-dir", tmp_path / "first")
    assert code == 0, err
    code, _, err = lifeline("export", tmp_path / "first", "--out", path)
    assert code == 0, err
    code, _, err = lifeline(
        "train", write_config(tmp_path), "--seed", "5", "--init-from", path, *settings, "--run-dir", tmp_path / "second"
    )
    assert code == 0, err
    theirs, ours = newest(tmp_path / "first").weights(), newest(tmp_path / "second").weights()
    assert all((theirs[name] == ours[name]).all() for name in theirs)
    wide = write_config(tmp_path, network=TINY["network"] | {"channels": 18})
    code, _, err = lifeline("train", wide, "--init-from", path, *settings, "--run-dir", tmp_path / "third")
    assert code == 1
    assert "another network" in err
    assert not (tmp_path / "third").exists()
    with safetensors.safe_open(path, "np") as file:
        safetensors.numpy.save_file({"a": file.get_tensor("stem.bias")}, path, file.metadata())
    settings += ["--run-dir", tmp_path / "third"]
    code, _, err = lifeline("train", write_config(tmp_path), "--init-from", path, *settings)
    assert code == 1
    assert "do not fit this network" in err
    assert not (tmp_path / "third").exists()


def tar_of(**files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        tar_of(**{"../outside": b"x"}),
        tar_of(**{"/tmp/outside": b"x"}),
        tar_of(**{"checkpoints/../../outside": b"x", "config.yaml": b"{}"}),
        tar_of(**{"config.yaml": b"{}"}),
        tar_of(**{"config.yaml": b"speed: 3"}),
    ],
)
def test_what_is_no_packed_run_gets_one_line_and_leaves_nothing(here, tmp_path, data):
    file = tmp_path / "bad.tar.gz"
    file.write_bytes(data)
    code, _, err = here("train", "--resume", file, "--run-dir", tmp_path / "deep" / "run")
    assert code == 1
    assert err.startswith("lifeline: ")
    assert err.count("\n") == 1
    assert not list((tmp_path / "deep").iterdir())
    assert not (tmp_path / "outside").exists()


@pytest.mark.slow
def test_a_damaged_or_cut_pack_is_refused(whole_run, tmp_path):
    data = whole_run[1].read_bytes()
    for number, broken in enumerate((data[: len(data) // 2], data[:5000] + bytes([data[5000] ^ 1]) + data[5001:])):
        file = tmp_path / f"broken{number}.tar.gz"
        file.write_bytes(broken)
        code, _, err = lifeline("train", "--resume", file, "--run-dir", tmp_path / f"run{number}")
        assert code == 1
        assert err.count("\n") == 1


def test_packing_what_is_no_run_gets_one_line(tmp_path):
    code, _, err = lifeline("pack", tmp_path, "--out", tmp_path / "x.tar.gz")
    assert code == 1
    assert "holds no run" in err
