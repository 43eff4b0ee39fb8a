"""Commands that look: parts of windows, marked pictures, what is silent, what works on the desktop itself."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from tests.unit.cli.conftest import Cli
from tests.unit.client.conftest import Desk, match

MENU = json.dumps([{"role": "menubar"}])
MARK = {"label": "e7", "role": "button", "name": "Save", "box": [2, 2, 30, 20]}


def picture() -> str:
    out = io.BytesIO()
    Image.new("RGB", (64, 48), (255, 255, 255)).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def answering(desk: Desk, **answers: Any) -> None:
    for method, answer in answers.items():

        async def say(*_: Any, answer: Any = answer) -> Any:
            return answer

        desk.script[method] = say


def test_a_part_of_a_window_is_named_by_what_it_is(desk: Desk, cli: Cli) -> None:
    desk.matches = [[match("e5", role="menubar", name="")]]
    answering(desk, observe={"scene_id": "sc1", "generation": 1, "surface": "w1", "text": "[e5] menubar"})
    assert "[e5] menubar" in cli("observe", "notes", "--scope", MENU).out
    (asked,) = desk.named("observe")
    assert asked["scope"] == "e5"
    cli("observe", "notes")
    assert "scope" not in desk.named("observe")[1]


def test_a_label_of_an_earlier_command_is_refused_with_the_way_to_say_it(desk: Desk, cli: Cli) -> None:
    refused = cli("observe", "notes", "--scope", "e5", "--json")
    assert (refused.code, refused.error["code"]) == (2, "invalid_request")
    assert "--scope" in refused.error["fix"]
    assert desk.named("observe") == []


def test_a_marked_picture_of_an_application_shows_and_lists_what_can_be_acted_upon(
    desk: Desk, cli: Cli, tmp_path: Path
) -> None:
    shot = {"capture": {"capture_id": "c", "width": 64, "height": 48}, "png_base64": picture()}
    answering(desk, screenshot={**shot, "marks": [MARK]})
    plain, marked = tmp_path / "plain.png", tmp_path / "marked.png"
    assert cli("screenshot", str(plain), "--app", "notes").code == 0
    said = cli("screenshot", str(marked), "--app", "notes", "--marks")
    assert "[e7] button 'Save'" in said.out
    assert desk.named("screenshot") == [{"surface": "w1"}, {"surface": "w1", "marks": True}]
    with Image.open(plain) as before, Image.open(marked) as after:
        assert before.size == after.size == (64, 48)
        assert before.convert("RGB").tobytes() != after.convert("RGB").tobytes()
    assert cli("screenshot", str(plain), "--app", "notes", "--surface", "w1").code == 2


def test_what_does_not_answer_is_listed_with_what_to_do(desk: Desk, cli: Cli) -> None:
    error = {"code": "backend_unavailable", "message": "the application does not answer", "fix": "quit it"}
    answering(desk, apps={"apps": [], "silent": [{"app": "exe:/usr/bin/hung", "pid": 7, "error": error}]})
    assert "silent: exe:/usr/bin/hung, pid 7: the application does not answer (fix: quit it)" in cli("apps").out
    assert cli("apps", "--json").data["silent"][0]["pid"] == 7


def test_what_aims_at_no_window_is_among_the_capabilities(desk: Desk, cli: Cli) -> None:
    launch = {"action": "app", "target_kind": "none", "route": "process.launch", "background": "isolated_only"}
    answering(desk, capabilities={"desktop": "d", "isolation": "isolated", "desktop_actions": [launch], "surfaces": {}})
    line = next(line for line in cli("capabilities").out.splitlines() if "process.launch" in line)
    assert line.startswith("(desktop)")


def test_a_query_says_what_is_hidden(desk: Desk, cli: Cli) -> None:
    desk.matches = [[match("e1"), match("e2", states=["enabled", "visible"])]]
    shown, hidden = cli("query", "notes", "--role", "button").out.splitlines()
    assert "hidden" not in shown
    assert hidden.endswith(" hidden")
