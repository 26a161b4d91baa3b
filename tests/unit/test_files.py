"""Files are there whole or not at all, and for all to read that the user lets read."""

import os
import stat

import pytest

from lifeline.files import write_atomic


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
