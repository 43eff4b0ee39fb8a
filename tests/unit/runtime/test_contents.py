"""Reading what elements hold, through the host: policy first, secrets never, labels as they were shown."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.errors import InvalidRequest, PolicyDenied, SecureSurface, StaleTarget, SurehandError
from surehand.model.scene import Node
from surehand.model.tables import TableSlice
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_reach import CLOSED, SHOWN, TITLE, agent, host_of

READS: list[tuple[str, dict[str, Any]]] = [
    ("read_text", {}),
    ("find_text", {"find": {"text": "a"}}),
    ("read_table", {}),
    ("screenshot", {}),
]


def table(handle: str) -> Node:
    return Node(handle=handle, role="table", name="T", states=frozenset({"showing", "enabled", "visible"}))


@pytest.mark.parametrize(("method", "params"), READS)
async def test_a_closed_window_is_not_touched(method: str, params: dict[str, Any]) -> None:
    world = World([field("text", "Text", SHOWN)], policy=CLOSED)
    host = host_of(world)
    session = await agent(host)
    for where in ({"surface": world.app.surface.surface_id}, {"app": "memory"}, {"label": "e2"}):
        with pytest.raises(SurehandError) as caught:
            await host.call(session, method, {**where, **params})
        assert caught.value.code in {"policy_denied", "app_not_found", "target_not_found", "capture_unavailable"}
        assert SHOWN not in json.dumps(caught.value.to_value())


async def test_a_title_that_became_closed_ends_the_pages_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World([table("t")], policy=TITLE)
    asked: list[int] = []

    async def rows(surface_id: str, handle: str, row_start: int, rows: int) -> TableSlice:
        asked.append(row_start)
        return TableSlice(columns=("A",), rows=((SHOWN,),), row_start=row_start, total_rows=9, total_columns=1)

    monkeypatch.setattr(world.app, "table", rows)
    host = host_of(world)
    session = await agent(host)
    first = await host.call(session, "read_table", {"app": "memory"})
    await host.call(session, "read_table", {"label": first["label"], "row_start": 1})
    world.app.surface = msgspec.structs.replace(world.app.surface, title="My Bank")
    with pytest.raises(PolicyDenied):
        await host.call(session, "read_table", {"label": first["label"], "row_start": 2})
    assert asked == [0, 1]


async def test_a_secret_is_neither_read_nor_searched_nor_a_table() -> None:
    hidden = msgspec.structs.replace(field("pw", "Password", SHOWN), role="password", secret=True)
    secret_table = msgspec.structs.replace(table("t"), secret=True)
    world = World([hidden, secret_table])
    host = host_of(world)
    session = await agent(host)
    of = {"surface": world.app.surface.surface_id}
    for method, params in READS[:2]:
        query = {"filters": [{"role": "password"}]}
        with pytest.raises(SecureSurface):
            await host.call(session, method, {**of, "query": query, **params})
        with pytest.raises(SurehandError):
            await host.call(session, method, {**of, **params})
    with pytest.raises(SecureSurface):
        await host.call(session, "read_table", of)


async def test_a_label_alone_means_what_was_shown_under_it() -> None:
    world = World([field("name", "Name", "old")])
    host = host_of(world)
    session = await agent(host)
    await host.call(session, "observe", {"app": "memory"})
    page = await host.call(session, "read_text", {"app": "memory"})
    assert (await host.call(session, "read_text", {"label": page["label"]}))["text"] == "old"
    world.app.change("name", name="Another")
    with pytest.raises(StaleTarget):
        await host.call(session, "read_text", {"label": page["label"]})


async def test_pages_and_bounds() -> None:
    text = "x" * (limits.TEXT_PAGE_CHARS_MAX + 1)
    world = World([field("name", "Name", text)])
    host = host_of(world)
    session = await agent(host)
    page = await host.call(session, "read_text", {"app": "memory", "chars": limits.TEXT_PAGE_CHARS_MAX})
    assert (len(page["text"]), page["next"]) == (limits.TEXT_PAGE_CHARS_MAX, limits.TEXT_PAGE_CHARS_MAX)
    rest = await host.call(session, "read_text", {"app": "memory", "chars": 5, "start": page["next"]})
    assert (rest["text"], rest.get("next")) == ("x", None)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("read_text", {"chars": 0}),
        ("read_text", {"chars": limits.TEXT_PAGE_CHARS_MAX + 1}),
        ("read_text", {"chars": 5, "end": 7}),
        ("read_text", {"start": -1}),
        ("read_text", {"label": "e1", "query": {"filters": [{"role": "text"}]}}),
        ("read_text", {"label": "e 1"}),
        ("read_table", {"rows": 0}),
        ("read_table", {"rows": limits.TABLE_ROWS_MAX + 1}),
        ("read_table", {"row_start": -1}),
        ("find_text", {"find": {"text": ""}}),
        ("find_text", {}),
        ("screenshot", {"region": [0, 0, 0, 5]}),
        ("screenshot", {"region": [0, 0, limits.COORDINATE_MAX + 1, 5]}),
        ("screenshot", {"region": [0, 0, 5]}),
        ("screenshot", {"monitor": "a"}),
        ("screenshot", {"label": "e1", "region": [0, 0, 5, 5]}),
    ],
)
async def test_what_is_out_of_bounds_is_refused(method: str, params: dict[str, Any]) -> None:
    world = World([field("name", "Name", "text")])
    host = host_of(world)
    session = await agent(host)
    with pytest.raises(InvalidRequest):
        await host.call(session, method, {"app": "memory", **params})


async def test_a_wait_hears_of_a_new_title_also_where_the_window_is_named() -> None:
    world = World([button("a", "A")])
    host = host_of(world)
    session = await agent(host)
    await host.call(session, "surfaces", {})
    condition = {"kind": "title_contains", "contains": "Saved"}
    params = {"surface": world.app.surface.surface_id, "conditions": [condition], "timeout_ms": 3_000}
    waiting = asyncio.ensure_future(host.call(session, "wait", params))
    await asyncio.sleep(0)
    world.app.surface = msgspec.structs.replace(world.app.surface, title="Saved")
    world.app.root = msgspec.structs.replace(world.app.root, name="Saved")
    world.app.add(button("b", "B"))
    found = await waiting
    assert found["satisfied"] is True
    assert found["window"]["title"] == "Saved"


async def test_a_wait_says_what_it_saw_and_no_secret() -> None:
    hidden = msgspec.structs.replace(field("pw", "Password", SHOWN), role="password", secret=True)
    world = World([hidden, button("a", "A")])
    host = host_of(world)
    session = await agent(host)
    conditions = [
        {"kind": "element_exists", "query": {"filters": [{"role": "password"}]}},
        {"kind": "element_gone", "query": {"filters": [{"role": "button"}]}},
    ]
    found = await host.call(session, "wait", {"app": "memory", "conditions": conditions, "timeout_ms": 1})
    assert found["satisfied"] is False
    assert [one["satisfied"] for one in found["conditions"]] == [True, False]
    assert found["conditions"][1]["element"]["name"] == "A"
    assert SHOWN not in json.dumps(found)
    # What a wait named may be acted upon by its label.
    label = found["conditions"][1]["element"]["label"]
    assert (await host.call(session, "refs", {"labels": [label]}))["refs"][label]["name"] == "A"


@pytest.mark.parametrize(("method", "params"), READS[:3])
async def test_what_was_read_of_a_window_that_became_closed_meanwhile_is_not_given_out(
    method: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decided again on what was read: the application changed its title while it answered."""
    world = World([field("text", "Text", SHOWN), table("t")], policy=TITLE)
    app = world.app

    def closing(real: Any) -> Any:
        async def read(*args: Any) -> Any:
            answer = await real(*args)
            app.surface = msgspec.structs.replace(app.surface, title="My Bank")
            return answer

        return read

    for name in ("text", "document", "table"):
        monkeypatch.setattr(app, name, closing(getattr(app, name)))
    host = host_of(world)
    session = await agent(host)
    with pytest.raises(PolicyDenied) as refused:
        await host.call(session, method, {"surface": app.surface.surface_id, **params})
    assert SHOWN not in json.dumps(refused.value.to_value())
    await host.parts.reads.close()
    assert "read.recorded.v1" not in await world.types()
