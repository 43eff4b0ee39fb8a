"""The layering sentence of docs/architecture.md is a test: imports point strictly down."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surehand"

#: Layer of each top-level folder or module of the package; a module imports strictly lower layers or its own folder.
LAYERS = {
    "errors": 0,
    "limits": 0.1,
    "canonical": 0.2,
    "verify": 0.5,
    "model": 1,
    "signing": 1.5,
    "core": 2,
    "ports": 2.5,
    "adapters": 3,
    "runtime": 4,
    "daemon": 5,
    "client": 5,
    "tools": 5.5,
    "cli": 6,
    "mcp": 5.8,
    "console": 5.9,
    "fleet": 6,
    "testing": 9,
}

#: Folders that may import nothing of surehand but themselves.
ALONE = {"verify"}

#: Import a lower layer would forbid, and why it is right all the same.
EXCEPTIONS: dict[tuple[str, str], str] = {}

#: Third-party and standard modules that pure code must not touch.
IMPURE = {"asyncio", "socket", "os", "subprocess", "time", "random", "secrets", "logging", "threading", "select"}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "fixtures" not in path.parts)


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.update(
                f"{node.module}.{alias.name}" if node.module == "surehand" else node.module for alias in node.names
            )
    return found


def part_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_lower_layers_or_its_own_folder(path: Path) -> None:
    relative = path.relative_to(SOURCE)
    own = relative.parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for name in imports_of(path):
        if not name.startswith("surehand"):
            continue
        other = part_of(name)
        if other == own or (str(relative), name) in EXCEPTIONS:
            continue
        assert own not in ALONE, f"{relative} imports {name}; {own}/ imports nothing of surehand"
        assert other in LAYERS, f"{relative} imports {name}, which no layer lists"
        assert LAYERS[other] < LAYERS[own], f"{relative} (layer {own}) imports {name} (layer {other})"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_pure_layers_touch_nothing_outside(path: Path) -> None:
    relative = path.relative_to(SOURCE)
    if relative.parts[0] not in {"core", "model"}:
        return
    tops = {name.split(".")[0] for name in imports_of(path)}
    assert not tops & IMPURE, f"{relative} imports {sorted(tops & IMPURE)}"
    text = ast.parse(path.read_text("utf-8"))
    assert not any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in ast.walk(text)), relative


def test_adapters_do_not_import_each_other() -> None:
    for path in (SOURCE / "adapters").rglob("*.py"):
        relative = path.relative_to(SOURCE / "adapters")
        own = relative.parts[0].removesuffix(".py")
        for name in imports_of(path):
            if name.startswith("surehand.adapters."):
                assert name.split(".")[2] == own, f"{relative} imports {name}"


def test_only_compose_names_adapters() -> None:
    for path in modules():
        relative = str(path.relative_to(SOURCE))
        if relative.startswith(("adapters/", "testing/")) or relative == "runtime/compose.py":
            continue
        used = {name for name in imports_of(path) if name.startswith("surehand.adapters")}
        assert not used, f"{relative} imports {used}"


def test_only_the_gateway_calls_acting_methods() -> None:
    for path in modules():
        relative = str(path.relative_to(SOURCE))
        if relative.startswith(("adapters/", "testing/")) or relative == "runtime/gateway.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "perform":
                pytest.fail(f"{relative}:{node.lineno} calls perform(); only runtime/gateway.py may")
