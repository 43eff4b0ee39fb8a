"""The documentation tells the truth: links lead somewhere, commands and tests exist, code compiles, no machine shows."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from surehand.cli.app import build
from surehand.verify import command as verify_command

ROOT = Path(__file__).parents[2]
ANSWERS = ("kept", "changed", "dropped", "later")
ADRS = (
    "canonical-form", "records-library", "commit-point", "own-dbus-transport", "identity-and-context-of-targets",
    "daemon-and-faces", "the-cli-can-act", "stable-contradiction-is-failed",
)  # fmt: skip
MACHINE = re.compile(r"/(?:work|root|home/\w+|Users)/|/tmp/(?!surehand-|\.X11-unix|\.)\w")


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return sorted(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


PAGES = pages()
DOCS = [page for page in PAGES if page.parent == ROOT or page.is_relative_to(ROOT / "docs")]
BY_NAME = {"ids": lambda page: str(page.relative_to(ROOT))}


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def blocks(page: Path, *languages: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [text for language, text in found if language in languages]


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", prose(page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, **BY_NAME)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text("utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.relative_to(ROOT)} links to {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.relative_to(ROOT)} links to {target}"


# --- commands --------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    page: str
    text: str


def command_lines(page: Path, program: str) -> Iterator[Line]:
    """Yield what a page tells its reader to type: lines of shell blocks, and code within sentences."""
    text = page.read_text("utf-8")
    shell = "\n".join(blocks(page, "sh", "console", "bash")).replace("\\\n", " ")
    places = [*shell.splitlines(), *re.findall(r"`([^`\n]+)`", prose(text).replace("\n", " "))]
    for place in places:
        for part in re.split(r"&&|\|\||;|(?<!\\)\||\$\(", place):
            words = part.strip().removeprefix("$ ")
            if words == program or words.startswith(program + " "):
                yield Line(str(page.relative_to(ROOT)), words)


def all_lines(program: str) -> list[Line]:
    return [line for page in DOCS if "CHANGELOG" not in page.name for line in command_lines(page, program)]


def words_of(line: Line) -> list[str]:
    try:
        return shlex.split(line.text, comments=True)[1:]
    except ValueError:  # an apostrophe in a sentence
        return line.text.split()[1:]


COMMANDS = all_lines("surehand")


def test_the_documentation_shows_commands() -> None:
    assert len(COMMANDS) > 40


@pytest.mark.parametrize("line", sorted(set(COMMANDS)), ids=lambda line: f"{line.page}: {line.text}")
def test_every_command_line_exists_with_its_options(line: Line) -> None:
    words = [word for word in words_of(line) if word not in {"--json", "…", "&"}]
    if "--" in words:
        words = words[: words.index("--")]
    here = typer.main.get_command(build())
    known = {"--help", "-h"}
    while True:
        known |= {name for option in here.params for name in [*option.opts, *option.secondary_opts]}
        children = getattr(here, "commands", {})
        if not children or not words or words[0].startswith("-") or not words[0].islower():
            break
        assert words[0] in children, f"there is no command {words[0]!r}"
        here = children[words.pop(0)]
    given = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    assert set(given) <= known, f"unknown options in {line.text!r}"


def test_every_option_of_the_auditor_exists() -> None:
    told = Path(verify_command.__file__).read_text("utf-8")
    lines = all_lines("surehand-verify")
    assert lines
    for line in lines:
        for word in words_of(line):
            assert not word.startswith("--") or f'"{word}"' in told, line


def test_every_script_that_is_named_exists_and_can_be_run() -> None:
    named = {
        name for page in DOCS for name in re.findall(r"(?<![\w/])(?:\./)?scripts/(\w[\w.-]*)", page.read_text("utf-8"))
    }
    assert {"bootstrap", "test", "check", "fix"} <= named
    for name in named:
        script = ROOT / "scripts" / name
        assert script.is_file(), name
        assert script.suffix or script.stat().st_mode & 0o111, name


# --- code and data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", DOCS, **BY_NAME)
def test_python_on_a_page_compiles(page: Path) -> None:
    for number, code in enumerate(blocks(page, "python")):
        compile(code, f"{page.name}, block {number}", "exec")
    for script in blocks(page, "sh"):
        for code in re.findall(r"<<'END'\n(.*?)^END$", script, re.DOTALL | re.MULTILINE):
            compile(code, page.name, "exec")


@pytest.mark.parametrize("page", PAGES, **BY_NAME)
def test_a_page_names_no_path_of_one_machine(page: Path) -> None:
    found = MACHINE.search(page.read_text("utf-8"))
    assert found is None, found


def test_generated_parts_are_marked_and_closed() -> None:
    """Their content is checked where it is generated (tests/unit/test_lifecycle_docs.py)."""
    for page in DOCS:
        text = page.read_text("utf-8")
        assert text.count("<!-- generated: ") == text.count("<!-- end -->"), page


# --- the pages that must be there ------------------------------------------------------------------------------------


def test_the_decisions_that_must_be_written_down_are_and_the_index_lists_them_all() -> None:
    folder = ROOT / "docs/adr"
    there = sorted(path.name for path in folder.glob("0*.md"))
    assert {name.partition("-")[2].removesuffix(".md") for name in there} >= set(ADRS)
    index = (folder / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\((0\d+[^)]*)\)", index)) == there
    for name in there:
        heads = re.findall(r"^## (.*)$", (folder / name).read_text("utf-8"), re.MULTILINE)
        assert heads == ["Context", "Options", "Decision", "Price"], name


def test_the_map_leads_to_every_page() -> None:
    text = (ROOT / "docs/README.md").read_text("utf-8")
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", text)}
    docs = {page for page in DOCS if page.is_relative_to(ROOT / "docs") and not page.name.startswith("0")}
    assert docs - linked == {ROOT / "docs/README.md"}


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs/dependencies.md").read_text("utf-8")
    rows = {name: row.split("|") for row in page.splitlines() for name in re.findall(r"^\| `([\w-]+)` \|", row)}
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    needed = set(re.findall(r'^  "([\w-]+)>=', project, re.MULTILINE))
    assert needed
    for name in needed:
        assert name in rows, f"docs/dependencies.md says nothing of {name}"
        assert all(cell.strip() for cell in rows[name][1:4]), name


# --- conformance -----------------------------------------------------------------------------------------------------


def cases() -> list[tuple[str, str, str]]:
    text = (ROOT / "docs/conformance.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return [(row[0], row[1], row[2]) for row in rows if row[0] != "cases"]


def existing_tests() -> set[str]:
    files = (ROOT / "tests").rglob("*.py")
    return {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))}


def test_every_case_has_one_answer_and_what_is_kept_has_a_test() -> None:
    seen: set[str] = set()
    for ids, answer, how in cases():
        assert answer in ANSWERS, ids
        assert how, ids
        if answer == "kept":
            assert re.search(r"`test_\w+`|`benchmarks/|as the rows", how), f"{ids} is kept by nothing"
        for one in re.split(r"[,–]\s*", ids):
            assert re.fullmatch(r"[A-Z]{1,2}\d+[a-z]?", one), one
            assert one not in seen, f"{one} is answered twice"
            seen.add(one)


def test_every_system_is_accounted_for() -> None:
    families = {family for ids, _, _ in cases() for family in re.findall(r"\b[A-Z]+", ids)}
    assert families >= {
        "PM", "PF", "PP", "PL", "PS", "PX", "PC", "PI", "PH", "PW", "PA", "PB",
        "SM", "SP", "SR", "SA", "SB", "ST", "SC", "SO", "SX", "SQ", "SV", "S", "K",
    }  # fmt: skip


def test_every_test_that_conformance_names_exists() -> None:
    named = {name for _, _, how in cases() for name in re.findall(r"`(test_\w+)`", how)}
    assert len(named) > 100
    assert named - existing_tests() == set()


def test_every_file_that_a_page_names_exists() -> None:
    pattern = re.compile(r"`((?:docs|spec|tests|benchmarks|examples|src|scripts)/[\w./-]*\w)`")
    for page in DOCS:
        for name in pattern.findall(prose(page.read_text("utf-8"))):
            assert (ROOT / name).exists(), f"{page.relative_to(ROOT)} names {name}"
