"""Nobody but `core/policy/proof.py` calls a text proven, so that nothing from a screen becomes a fact by a slip."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "surehand"
PROOF = SOURCE / "core" / "policy" / "proof.py"
#: Where a name may be called proven that no record proves: lists and the request, and the operator's own documents.
NAMES = {"core/policy/categories.py": {"categories"}, "runtime/policy_desk.py": {"stated"}}


def calls(tree: ast.AST) -> set[str]:
    return {
        f"{function.value.id}.{function.attr}" if isinstance(function, ast.Attribute) else function.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for function in [node.func]
        if isinstance(function, ast.Name)
        or (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name))
    }


def test_only_one_module_makes_proven_texts() -> None:
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        relative = str(path.relative_to(SOURCE))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Proven"}
        if path != PROOF and names:
            assert "Proven" not in calls(tree), f"{relative} calls a text proven"
            assert not any(
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in {"cast", "map"}
                and any(isinstance(one, ast.Name) and one.id == "Proven" for one in node.args)
                for node in ast.walk(tree)
            ), f"{relative} makes proven texts by a detour"
        used = {call.removeprefix("proof.") for call in calls(tree) if call in {"proof.categories", "proof.stated"}}
        assert used <= NAMES.get(relative, set()), f"{relative} calls {used} of proof"
