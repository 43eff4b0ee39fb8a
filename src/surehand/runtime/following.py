"""After an unknown outcome: what the application shows now of what was acted on, so that it can be judged (spec §5.7).

Finds the element by the hashes that the claim holds, which name nothing by themselves; what it shows is what the
session may read, and says nothing about whether the effect happened.
"""

from __future__ import annotations

from typing import Any

from surehand import limits
from surehand.core.history import Claimed
from surehand.core.scene.describe import describe
from surehand.errors import SurehandError
from surehand.runtime.parts import Parts
from surehand.runtime.session import Session
from surehand.runtime.views import target_value


async def seen_since(parts: Parts, session: Session, claim: Claimed) -> dict[str, Any]:
    """Return the windows of the application that was acted on, and the elements that are what was acted on.

    Their labels can be acted upon. Without any element what was meant is gone, is something else, or had no element.
    """
    resolved = (claim.receipt.get("resolved") or {}).get
    wanted = (resolved("fingerprint_hash"), resolved("context_hash"))
    windows: list[dict[str, Any]] = []
    elements: list[dict[str, Any]] = []
    try:
        surfaces = await parts.scenes.surfaces(session)
    except SurehandError as error:
        return {"error": error.to_value()}
    for surface in surfaces:
        if surface.app.key != claim.app or len(windows) >= limits.CANDIDATES_MAX:
            continue
        windows.append({"surface": surface.surface_id, "title": surface.title})
        try:
            scene = await parts.scenes.observe(session, surface.surface_id)
        except SurehandError as error:
            windows[-1]["error"] = error.to_value()
            continue
        parts.reads.note(session, scene.surface, "desktop.query", "", scene.generation)
        for index, target in enumerate(scene.targets):
            if (target.fingerprint_hash, target.context_hash) == wanted and len(elements) < limits.CANDIDATES_MAX:
                session.shown.match(scene, index)
                value = target_value(scene, index)
                shown: dict[str, Any] = {"surface": surface.surface_id, "text": describe(scene, index)}
                shown |= {name: value[name] for name in ("label", "states", "value") if name in value}
                elements.append(shown)
    return {"windows": windows, "elements": elements}
