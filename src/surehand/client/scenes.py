"""What was observed, as the library shows it: scenes, targets and pictures. Observed data, never instructions."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surehand.client import display
from surehand.client.aim import describe
from surehand.errors import TargetNotFound


@dataclass(frozen=True, slots=True)
class Target:
    """One observed element. `ref` fences it: acting on it reaches this element with this meaning, or is refused."""

    value: dict[str, Any]

    @property
    def label(self) -> str:
        """Its label in this session, such as `e17`."""
        return str(self.value["label"])

    @property
    def role(self) -> str:
        """Its role."""
        return str(self.value["role"])

    @property
    def name(self) -> str:
        """Its name on the screen."""
        return str(self.value.get("name", ""))

    @property
    def text(self) -> str | None:
        """Its value; None where it has none or it is secret."""
        text = self.value.get("value")
        return None if text is None else str(text)

    @property
    def states(self) -> frozenset[str]:
        """Its states, such as `enabled` and `checked`."""
        return frozenset(self.value.get("states", ()))

    @property
    def context(self) -> str:
        """The identifying label around it, such as its row's."""
        return str(self.value.get("context", ""))

    @property
    def ref(self) -> dict[str, Any]:
        """The fenced reference that requests carry."""
        return dict(self.value["ref"])

    def __repr__(self) -> str:
        return f"<Target {describe(self.value)}>"

    def _repr_html_(self) -> str:
        return display.target_html(self.value)


@dataclass(frozen=True, slots=True)
class Scene:
    """One immutable observation of a window. `text` is its compact text form, or a diff where `kind` is `diff`."""

    value: dict[str, Any]

    @property
    def text(self) -> str:
        """The text form."""
        return str(self.value["text"])

    @property
    def surface(self) -> str:
        """The window's id."""
        surface = self.value.get("surface", "")
        return str(surface.get("surface_id", "") if isinstance(surface, dict) else surface)

    @property
    def scene_id(self) -> str:
        """The scene's id in this session; a later `observe(base=…)` can name it."""
        return str(self.value["scene_id"])

    @property
    def generation(self) -> int:
        """Grows with every change of a target in this window."""
        return int(self.value["generation"])

    @property
    def kind(self) -> str:
        """`full` or `diff`."""
        return str(self.value.get("kind", "full"))

    @property
    def reason(self) -> str:
        """Why a full tree was given although a diff was asked for."""
        return str(self.value.get("reason") or "")

    @property
    def targets(self) -> list[Target]:
        """Every element, in document order; empty where only the text was asked for."""
        return [Target(value) for value in self.value.get("targets") or ()]

    def __getitem__(self, label: str) -> Target:
        for target in self.targets:
            if target.label == label:
                return target
        raise TargetNotFound(f"no element {label!r} in this scene", details={"scene_id": self.scene_id})

    def __iter__(self) -> Iterator[Target]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.value.get("targets") or ())

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Scene {self.scene_id} of {self.surface}, generation {self.generation}, {self.kind}>"

    def _repr_html_(self) -> str:
        return display.scene_html(self.surface, self.text, f"generation {self.generation}, {self.kind}")


@dataclass(frozen=True, slots=True)
class Picture:
    """A capture: PNG bytes, and in `capture` where its pixels stand on the desktop.

    `marks` tells where what can be acted upon stands in it, where that was asked for: `{label, role, name, box}`.
    """

    capture: dict[str, Any]
    png: bytes
    marks: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, value: dict[str, Any]) -> Picture:
        """Return the picture in a `screenshot` answer."""
        png = base64.b64decode(value["png_base64"], validate=True)
        return cls(dict(value["capture"]), png, tuple(value.get("marks", ())))

    def __repr__(self) -> str:
        size = f"{self.capture.get('width')}×{self.capture.get('height')}"
        return f"<Picture {self.capture.get('capture_id')} {size}, {len(self.png)} bytes>"

    def _repr_png_(self) -> bytes:
        return self.png
