"""An application that takes longer than a list of all windows waits has lost none of its windows."""

from __future__ import annotations

from surehand.model.scene import Surface
from surehand.testing.worlds import World


async def test_an_application_that_was_slow_to_list_its_windows_has_lost_none() -> None:
    world = World()
    request = await world.request("op")
    listed = world.app.surfaces
    answers = [()]

    async def slow(pid: int | None = None) -> tuple[Surface, ...]:
        return answers.pop() if answers else await listed(pid)

    world.app.surfaces = slow  # type: ignore[method-assign]
    assert (await world.gateway.act(world.session, request)).status == "succeeded"
    answers.append(())
    # Who asks for all windows does not wait for it, and who is then asked who is silent hears of nobody.
    assert [one.surface_id for one in await world.desk.surfaces()] == [world.app.surface.surface_id]
    assert world.desk.silent == {}


async def test_a_window_that_is_listed_no_more_is_gone() -> None:
    world = World()
    request = await world.request("op")

    async def nothing(pid: int | None = None) -> tuple[Surface, ...]:
        return ()

    world.app.surfaces = nothing  # type: ignore[method-assign]
    reply = await world.gateway.act(world.session, request)
    assert (reply.status, reply.error["code"]) == ("refused", "window_not_found")
    assert world.app.effects == []
    assert await world.desk.surfaces() == ()
