"""Games on disk: read as written, bounded, cut where a run goes on from, damage named."""

import numpy as np
import pytest

from lifeline import CheckpointError
from training.shards import ShardStore
from training.trajectory import Trajectory, pack, unpack


def game(number, length=5, num_actions=21):
    return Trajectory(
        states=np.full((length, 5), number, np.uint64),
        policy_targets=np.full((length, num_actions), number % 7, np.float16),
        root_values=np.full(length, 0.5, np.float32),
        surprise=np.zeros(length, np.float16),
        to_play=np.zeros(length, np.int8),
        actions=np.arange(length, dtype=np.int16),
        solved=np.full(length, 1, np.int8),
        strayed=np.full(length, 1, np.int8),
        outcome=-1,
        random_plies=2,
        game_id=2**63 + number,
        version=number,
    )


def ids(games):
    return [g.game_id - 2**63 for g in games]


def filled(folder, shards=4, max_bytes=1e9):
    store = ShardStore(folder, max_bytes)
    for number in range(shards):
        store.append([game(2 * number), game(2 * number + 1, 3)])
        store.flush(keep_samples=8)
    return store


def test_games_are_packed_and_unpacked_alike():
    games = [game(1), game(2, 9), game(3, 1)]
    for before, after in zip(games, unpack(pack(games)), strict=True):
        assert vars(before).keys() == vars(after).keys()
        assert all(np.array_equal(getattr(before, k), getattr(after, k)) for k in vars(before))


def test_games_of_earlier_versions_were_neither_solved_nor_strayed_nor_drills():
    arrays = pack([game(1), game(2, 9)])
    for name in ("solved", "strayed", "drill"):
        del arrays[name]
    for before, after in zip([game(1), game(2, 9)], unpack(arrays), strict=True):
        assert not after.solved.any()
        assert not after.strayed.any()
        assert not after.drill
        assert np.array_equal(before.states, after.states)


def test_games_are_read_back_in_order_and_counted(tmp_path):
    filled(tmp_path)
    store = ShardStore(tmp_path, 1e9)
    assert store.total == 32
    assert [ids(games) for games in store.newest_first()] == [[6, 7], [4, 5], [2, 3], [0, 1]]


def test_games_of_several_sizes_lie_in_files_of_their_own(tmp_path):
    store = ShardStore(tmp_path, 1e9)
    store.append([game(1), game(2, num_actions=39), game(3)])
    store.flush(0)
    store = ShardStore(tmp_path, 1e9)
    assert store.total == 15
    assert [ids(games) for games in store.newest_first()] == [[2], [1, 3]]


def test_the_oldest_go_when_the_disk_is_full_but_never_the_window(tmp_path):
    one = ShardStore(tmp_path / "a", 1e9)
    one.append([game(0), game(1, 3)])
    one.flush(8)
    store = filled(tmp_path / "b", shards=10, max_bytes=2.5 * one.bytes)
    assert len(store.shards) == 2
    assert store.total == 80
    tight = filled(tmp_path / "c", shards=3, max_bytes=1)
    assert len(tight.shards) == 1


def test_what_comes_behind_a_checkpoint_is_cut_off(tmp_path):
    store = filled(tmp_path)
    store.truncate(16)
    assert ShardStore(tmp_path, 1e9).total == 16
    with pytest.raises(CheckpointError, match="checkpoint was made at 13"):
        store.truncate(13)


def test_damage_is_named(tmp_path):
    store = filled(tmp_path)
    path = store.shards[1].path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged"):
        list(ShardStore(tmp_path, 1e9).newest_first())


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    store = ShardStore(tmp_path / "file", 1e9)
    store.append([game(1)])
    with pytest.raises(CheckpointError, match="cannot write"):
        store.flush(0)
