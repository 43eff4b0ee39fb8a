"""Modules hold one idea and functions fit a screen; the lists of exceptions may only shrink."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surehand"
MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60

#: Longer on purpose: "path:function" → why.
LONG_FUNCTIONS: dict[str, str] = {}


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_no_module_is_longer_than_its_limit() -> None:
    long = {
        str(path.relative_to(SOURCE)): count
        for path in sources()
        if "fixtures" not in path.parts and (count := len(path.read_text("utf-8").splitlines())) > MODULE_LINES_MAX
    }
    assert not long


def test_no_function_is_longer_than_its_limit() -> None:
    long = {}
    for path in sources():
        if "fixtures" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                name = f"{path.relative_to(SOURCE)}:{node.name}"
                if lines > FUNCTION_LINES_MAX and name not in LONG_FUNCTIONS:
                    long[name] = lines
    assert not long


def test_every_module_opens_with_its_promise() -> None:
    bare = [
        str(path.relative_to(SOURCE))
        for path in sources()
        if path.read_text("utf-8").strip() and ast.get_docstring(ast.parse(path.read_text("utf-8"))) is None
    ]
    assert not bare


def test_no_numbers_hide_outside_limits() -> None:
    """Time-outs and sizes written as powers of 1024 or whole seconds in ms belong in limits.py."""
    for path in sources():
        if path.name == "limits.py" or "fixtures" in path.parts or "testing" in path.parts:
            continue
        text = path.read_text("utf-8")
        assert "1024 * 1024" not in text, f"{path.relative_to(SOURCE)} writes a size limit of its own"
