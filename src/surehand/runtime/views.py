"""How surfaces, elements and scenes leave the host: plain JSON values, secrets taken out, references put in."""

from __future__ import annotations

from typing import Any

from surehand.core.release import release_node
from surehand.core.scene.fence import reference
from surehand.model.record import to_value
from surehand.model.scene import Scene, Surface


def surface_value(surface: Surface) -> dict[str, Any]:
    """Return what a caller may know of a window."""
    value: dict[str, Any] = {
        "surface_id": surface.surface_id,
        "app": surface.app.key,
        "pid": surface.app.pid,
        "title": surface.title,
        "role": surface.role,
        "toolkit": surface.toolkit,
        "states": sorted(surface.states),
    }
    if surface.bounds is not None:
        value["bounds"] = list(surface.bounds)
    return value


def target_value(scene: Scene, index: int) -> dict[str, Any]:
    """Return one element with the reference that fences it."""
    node, target = release_node(scene.tree.nodes[index]), scene.targets[index]
    value: dict[str, Any] = {
        "label": target.label,
        "role": node.role,
        "name": node.name,
        "states": sorted(node.states),
        "actions": list(node.actions),
        "capabilities": sorted(node.capabilities),
        "ref": to_value(reference(scene, index)),
    }
    # The tag is what makes it a target on the wire.
    value["ref"]["kind"] = "element"
    optional = {
        "value": node.value,
        "description": node.description or None,
        "context": target.context or None,
        "bounds": None if node.bounds is None else list(node.bounds),
        "secret": node.secret or None,
    }
    value.update({name: item for name, item in optional.items() if item is not None})
    return value
