"""Launching by desktop id: what the system installed, and nothing that merely ends in `.desktop`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from surehand import limits
from surehand.adapters.process import ProcessActor, installed_command
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
