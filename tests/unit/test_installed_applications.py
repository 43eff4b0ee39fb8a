"""Launching by desktop id: what the system installed, and nothing that merely ends in `.desktop`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from surehand import limits
from surehand.adapters.process import APPLICATIONS, ProcessActor, application_of, installed_command, missing
from surehand.errors import AppNotFound, UnsupportedAction
from surehand.model.actions import App
from surehand.runtime.compose import root_surface
from surehand.testing.attempts import RecordingAttempt

NOTES = "[Desktop Entry]\nType=Application\nName=Notes\nName[de]=Notizen\nExec={}\n\n[Desktop Action new]\nExec=other\n"


def install(folder: Path, text: str, name: str = "org.example.notes.desktop") -> str:
    (folder / name).write_text(text, "utf-8")
    return name


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("notes", ["notes"]),
        ("notes %U", ["notes"]),
        ("notes --new %f --icon %i", ["notes", "--new", "--icon"]),
        ('"/opt/My Notes/notes" "a b" 100%%', ["/opt/My Notes/notes", "a b", "100%"]),
        (r'notes "say \"hi\" \$HOME"', ["notes", 'say "hi" $HOME']),
        ("notes ; rm -rf / && $(reboot)", ["notes", ";", "rm", "-rf", "/", "&&", "$(reboot)"]),
    ],
)
def test_the_command_is_the_main_one_without_files_and_without_a_shell(
    tmp_path: Path, line: str, argv: list[str]
) -> None:
    assert installed_command(install(tmp_path, NOTES.format(line)), [tmp_path]) == argv


def test_the_first_folder_that_has_it_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, line in ((first, "mine"), (second, "theirs")):
        folder.mkdir()
        install(folder, NOTES.format(line))
    assert installed_command("org.example.notes.desktop", [tmp_path, first, second]) == ["mine"]


@pytest.mark.parametrize(
    "name",
    [
        *("nothing.desktop", ".desktop", "notes", "../notes.desktop", "/usr/share/applications/notes.desktop"),
        *("a/b.desktop", "a\x00.desktop", "-x.desktop", "notes.desktop\n", "ü.desktop"),
    ],
)
def test_what_is_no_id_of_an_installed_application_is_not_found(tmp_path: Path, name: str) -> None:
    install(tmp_path, NOTES.format("notes"))
    with pytest.raises(AppNotFound):
        installed_command(name, [tmp_path])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", AppNotFound),
        ("[Desktop Entry]\nType=Link\nURL=http://example.org\n", AppNotFound),
        ("[Desktop Entry]\nType=Application\nExec=notes\nHidden=true\n", AppNotFound),
        ("[Desktop Entry]\nType=Application\n", UnsupportedAction),
        ("[Desktop Entry]\nType=Application\nExec=%U\n", UnsupportedAction),
        ("[Desktop Entry]\nType=Application\nExec=top\nTerminal=true\n", UnsupportedAction),
    ],
)
def test_what_cannot_be_started_by_itself_is_refused(tmp_path: Path, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        installed_command(install(tmp_path, text), [tmp_path])


def test_a_description_is_read_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = NOTES.format("notes")
    end = text.index("Exec=notes") + len("Exec=notes\n")
    monkeypatch.setattr(limits, "DESKTOP_ENTRY_BYTES_MAX", end)
    assert installed_command(install(tmp_path, text), [tmp_path]) == ["notes"]
    monkeypatch.setattr(limits, "DESKTOP_ENTRY_BYTES_MAX", text.index("Exec=notes"))
    with pytest.raises(UnsupportedAction):
        installed_command(install(tmp_path, text), [tmp_path])


async def test_an_executable_that_is_called_like_an_id_is_never_run(tmp_path: Path) -> None:
    """Policy lets desktop ids through as what the system installed; a path must not pass for one."""
    evil = tmp_path / "evil.desktop"
    evil.write_text("#!/bin/sh\n")
    evil.chmod(0o755)
    launched: list[Sequence[str]] = []

    async def launch(argv: Sequence[str]) -> int:
        launched.append(argv)
        return 1

    action = App(op="launch", name=str(evil))
    attempt = RecordingAttempt(action, root_surface("demo"), None)
    with pytest.raises(AppNotFound):
        await ProcessActor(launch).perform(attempt)
    assert launched == []
    assert not attempt.entered


# --- plain names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["notes", "notes %U", "/usr/bin/notes %f", '"notes"'])
def test_a_plain_name_is_the_one_application_whose_whole_command_it_is(tmp_path: Path, line: str) -> None:
    install(tmp_path, NOTES.format(line))
    install(tmp_path, NOTES.format("notes --settings"), "org.example.notes-settings.desktop")
    install(tmp_path, NOTES.format("notes").replace("Name=", "NoDisplay=true\nName=", 1), "org.example.opener.desktop")
    assert application_of("notes", [tmp_path]) == "org.example.notes.desktop"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "/usr/bin/notes",
            "bin/notes",
            "./notes",
            "../notes",
            "notes.desktop",
            "org.example.notes.desktop",
            "notes x",
        ),
        *("", "Notes", "note", "notes\n", "notes\x00", "-notes", "nötes", "*", "[Desktop Entry]"),
    ],
)
def test_a_name_that_is_not_exactly_the_command_stays_a_program(tmp_path: Path, name: str) -> None:
    install(tmp_path, NOTES.format("notes"))
    assert application_of(name, [tmp_path]) is None


def test_a_path_is_a_program_also_where_it_is_an_applications_command(tmp_path: Path) -> None:
    install(tmp_path, NOTES.format("/usr/bin/notes"))
    assert application_of("/usr/bin/notes", [tmp_path]) is None


@pytest.mark.parametrize("line", ["notes -x", "/opt/notes", "/home/me/bin/notes", "./notes", "sh -c notes", ""])
def test_an_application_with_another_command_lends_no_name(tmp_path: Path, line: str) -> None:
    install(tmp_path, NOTES.format(line))
    assert application_of("notes", [tmp_path]) is None


def test_two_applications_of_one_command_decide_nothing(tmp_path: Path) -> None:
    for name in ("org.example.one.desktop", "org.example.two.desktop"):
        install(tmp_path, NOTES.format("notes"), name)
    assert application_of("notes", [tmp_path]) is None


def test_what_the_first_folder_has_of_an_id_hides_what_the_second_has(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, line in ((first, "other"), (second, "notes")):
        folder.mkdir()
        install(folder, NOTES.format(line))
    assert application_of("notes", [first, second]) is None
    assert application_of("notes", [second]) == "org.example.notes.desktop"


def test_one_application_too_many_to_look_through_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DESKTOP_ENTRIES_MAX", 3)
    for name in ("a.desktop", "b.desktop", "notes.desktop"):
        install(tmp_path, NOTES.format(name.partition(".")[0]), name)
    assert application_of("notes", [tmp_path]) == "notes.desktop"
    install(tmp_path, NOTES.format("z"), "z.desktop")
    assert application_of("notes", [tmp_path]) is None


def test_an_application_that_was_put_into_a_home_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a program could write gives no name: not the home, and no folder that the environment names."""
    planted = tmp_path / "applications"
    planted.mkdir()
    install(planted, NOTES.format("planted-here"))
    for variable in ("XDG_DATA_HOME", "XDG_DATA_DIRS", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert application_of("planted-here") is None
    assert application_of("planted-here", [planted]) == "org.example.notes.desktop"
    assert all(folder.is_relative_to("/usr") for folder in APPLICATIONS)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("notes", None),
        ("/opt/nothing", None),
        ("org.example.notes.desktop", None),
        ("notess", ("notes",)),
        ("Notes", ("notes",)),
        ("readme", ()),
        ("nonesuch", ()),
        ("org.example.note.desktop", ("org.example.notes.desktop",)),
        ("notes.desktop", ()),
        ("a\x00b", ()),
        ("n" * 5_000, ()),
        ("\udcff", ()),
    ],
)
def test_a_name_of_nothing_is_told_from_what_may_be_launched(
    tmp_path: Path, name: str, close: tuple[str, ...] | None
) -> None:
    install(tmp_path, NOTES.format("notes"))
    for program, mode in (("notes", 0o755), ("readme", 0o644)):
        (tmp_path / program).touch(mode)
    assert missing(name, f"{tmp_path}/none:{tmp_path}", [tmp_path / "none", tmp_path]) == close
