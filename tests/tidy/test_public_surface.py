"""What `import surehand` offers is short, sorted, documented in the code and on its page, and nothing else."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import surehand
from surehand import errors
from surehand.client.options import ActOptions
from surehand.client.verbs import Verbs

PAGE = (Path(__file__).parents[2] / "docs/reference/python.md").read_text("utf-8")
NAMES_MAX = 25


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> set[str]:
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)", cell)}


def test_the_surface_is_short_and_sorted_and_every_name_is_there() -> None:
    assert len(surehand.__all__) <= NAMES_MAX
    assert surehand.__all__ == sorted(set(surehand.__all__))
    assert set(dir(surehand)) == set(surehand.__all__)


def test_the_page_lists_exactly_the_public_names() -> None:
    assert first_cells(section("Everything public")) == set(surehand.__all__)


@pytest.mark.parametrize("name", sorted(set(surehand.__all__) - {"__version__"}))
def test_a_public_name_says_what_it_is_and_so_do_its_members(name: str) -> None:
    value = getattr(surehand, name)
    assert inspect.getdoc(value), name
    if not inspect.isclass(value):
        return
    for member, thing in inspect.getmembers(value):
        code = thing.fget if isinstance(thing, property) else thing
        if not member.startswith("_") and inspect.isfunction(code) and code.__module__.startswith("surehand"):
            assert inspect.getdoc(thing), f"{name}.{member}"


def test_every_error_of_the_library_is_one_of_ours() -> None:
    public = [getattr(surehand, name) for name in surehand.__all__]
    found = [one for one in public if inspect.isclass(one) and issubclass(one, BaseException)]
    assert found
    assert all(issubclass(one, errors.SurehandError) for one in found)


def test_the_page_lists_exactly_the_verbs() -> None:
    verbs = {name for name, _ in inspect.getmembers(Verbs, inspect.isfunction) if not name.startswith("_")}
    assert first_cells(section("Acting")) == verbs


def test_the_page_lists_exactly_the_options_of_an_action() -> None:
    told = re.search(r"takes the options (.*?)\. A misspelt", section("Acting"), re.DOTALL)
    assert told
    assert set(re.findall(r"`(\w+)`", told[1])) == set(ActOptions.__annotations__)


def test_the_page_lists_what_can_be_waited_for() -> None:
    from surehand.client.locators import Condition

    told = re.search(r"`wait_for\((.*?)\)`", section("Reading and waiting"), re.DOTALL)
    assert told
    assert set(re.findall(r'"(\w+)"', told[1])) == set(Condition.__args__)
