"""Files that only their owner may touch."""

from __future__ import annotations

import os
import threading

import pytest

from surehand.errors import PermissionMissing, TooLarge, Unavailable
from surehand.signing.private_files import (
    check_private,
    create_private,
    open_private,
    private_directory,
    read_private,
    read_trusted,
)

ANOTHER_UID = 12_345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "secret"
    create_private(path, b"secret")
    return path


def test_a_directory_is_made_for_us_alone(tmp_path):
    made = private_directory(tmp_path / "a" / "b")
    assert made.stat().st_mode & 0o777 == 0o700
    assert private_directory(tmp_path / "a" / "b") == made


def test_what_is_missing_above_a_directory_is_made_for_us_alone_too(tmp_path):
    # `surehand keys create` before the first daemon makes the runtime folder, which the daemon then checks.
    private_directory(tmp_path / "run" / "state" / "keys")
    for made in ("run", "run/state", "run/state/keys"):
        assert (tmp_path / made).stat().st_mode & 0o777 == 0o700
        private_directory(tmp_path / made, create=False)


def test_a_missing_directory_is_not_made_where_it_should_exist(tmp_path):
    with pytest.raises(Unavailable):
        private_directory(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o770, 0o711, 0o777])
def test_a_directory_that_lets_others_in_is_refused_and_left_as_it_is(tmp_path, mode):
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(PermissionMissing) as refused:
        private_directory(path)
    assert "chmod 0700" in refused.value.fix
    assert path.stat().st_mode & 0o777 == mode


def test_a_link_in_the_place_of_a_directory_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionMissing):
        private_directory(tmp_path / "link")


def test_a_file_in_the_place_of_a_directory_is_refused(file):
    with pytest.raises(PermissionMissing):
        private_directory(file)


@as_root
def test_a_directory_of_another_user_is_refused(tmp_path):
    path = tmp_path / "theirs"
    path.mkdir(mode=0o700)
    os.chown(path, ANOTHER_UID, ANOTHER_UID)
    with pytest.raises(PermissionMissing) as refused:
        private_directory(path)
    assert "chown" in refused.value.fix


def test_a_new_file_has_its_content_and_mode(file):
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_private(file, 100) == b"secret"
    assert [path.name for path in file.parent.iterdir()] == ["secret"]


def test_a_file_that_is_there_is_never_written_over(file):
    assert not create_private(file, b"other")
    assert read_private(file, 100) == b"secret"


def test_of_racing_makers_one_wins_and_all_read_the_same(tmp_path):
    path = tmp_path / "raced"
    won = []
    threads = [
        threading.Thread(target=lambda n=number: won.append(create_private(path, b"%d" % n))) for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won.count(True) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["raced"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o622])
def test_a_file_that_lets_others_in_is_refused_with_the_fix(file, mode):
    file.chmod(mode)
    for attempt in (lambda: read_private(file, 100), lambda: check_private(file)):
        with pytest.raises(PermissionMissing) as refused:
            attempt()
        assert f"chmod 0600 {file}" in refused.value.fix


def test_a_link_in_the_place_of_a_file_is_refused_and_not_followed(file, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    for attempt in (lambda: read_private(link, 100), lambda: check_private(link), lambda: read_trusted(link, 100)):
        with pytest.raises((PermissionMissing, Unavailable)):
            attempt()
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nothing")
    with pytest.raises(PermissionMissing), open_private(dangling, os.O_RDWR | os.O_CREAT):
        pass
    assert not (tmp_path / "nothing").exists()


def test_a_pipe_in_the_place_of_a_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    for read in (read_private, read_trusted):
        with pytest.raises((PermissionMissing, Unavailable)):
            read(tmp_path / "pipe", 100)


@as_root
def test_a_file_of_another_user_is_refused(file):
    os.chown(file, ANOTHER_UID, ANOTHER_UID)
    for read in (read_private, read_trusted):
        with pytest.raises(PermissionMissing) as refused:
            read(file, 100)
        assert "chown" in refused.value.fix


def test_a_file_at_the_limit_is_read_and_one_byte_more_is_not(file):
    assert read_private(file, 6) == b"secret"
    with pytest.raises(TooLarge):
        read_private(file, 5)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    assert not check_private(tmp_path / "none")
    with pytest.raises(Unavailable):
        read_private(tmp_path / "none", 10)


def test_a_trusted_file_may_be_read_by_others_and_changed_by_none(file):
    file.chmod(0o644)
    assert read_trusted(file, 100) == b"secret"
    for mode in (0o664, 0o646):
        file.chmod(mode)
        with pytest.raises(PermissionMissing):
            read_trusted(file, 100)
