"""Files are there whole or not at all, and for all to read that the user lets read."""

import errno
import fcntl
import os
import stat

import pytest

from lifeline.files import hold, write_atomic


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_mode_is_the_users(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, b"one")
    with pytest.raises(TypeError):
        write_atomic(path, "no bytes")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_held_by_one_at_a_time(tmp_path):
    with hold(tmp_path / "lock"), pytest.raises(BlockingIOError):
        hold(tmp_path / "lock")
    with hold(tmp_path / "lock"):
        pass


def test_without_locks_in_the_file_system_nobody_is_refused(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with hold(tmp_path / "lock"), hold(tmp_path / "lock"):
        pass
