"""How soon is a question on the console page, and how soon is a page there with ten thousand questions or operations?

Run: `python benchmarks/console.py`. A real host, a real console process and the distribution's Chromium on one machine; times are from the
question's record to the change in the page, by one clock, and the browser's own first paint.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from reviewing import filled

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.conftest import CHROMIUM
from tests.browser.kit import LiveHost, console_of, presentation

from surehand import limits
from surehand.core.approval import ask
from surehand.runtime.approvals import Question

ROUNDS = 20
OPERATIONS = 10_000
SEEN = """
(name) => new Promise((done) => {
  const look = () => document.body.innerText.includes(name) && (watcher.disconnect(), done(Date.now()));
  const watcher = new MutationObserver(look);
  watcher.observe(document.body, {childList: true, subtree: true, characterData: true});
  look();
})
"""
WATCH = f"(name) => {{ window.seen = ({SEEN})(name); }}"
PAINT = """
() => new Promise((done) => {
  const look = () => {
    const [entry] = performance.getEntriesByName("first-contentful-paint");
    entry ? done(entry.startTime) : requestAnimationFrame(look);
  };
  look();
})
"""


def visible_after_ms(page: Page, live: LiveHost) -> list[float]:
    page.goto("/approvals")
    page.wait_for_timeout(500)
    found = []
    for number in range(ROUNDS):
        name = f"button number {number}"
        page.evaluate(WATCH, name)
        asked = live.ask(element=name)
        found.append(page.evaluate("window.seen") - asked.requested_at_ms)
    live.forget_all()
    return found


def painted_after_ms(page: Page, path: str) -> float:
    page.goto("about:blank")
    page.goto(path)
    return float(page.evaluate(PAINT))


def fill(live: LiveHost) -> None:
    now = time.time_ns() // 1_000_000

    async def put() -> None:
        for number in range(limits.APPROVALS_OPEN_MAX):
            shown = presentation(element=f"button {number:05}", principal=f"uid:{number // 256}")
            one = ask(shown, approval_id=f"many-{number:05}", operation_id=f"op-{number}", now_ms=now)
            live.approvals._open(Question(one, 1))

    live.do(put())


async def journal(folder: Path) -> None:
    """Have ten thousand operations in the journal, written by the path itself."""
    world = await filled(folder, OPERATIONS)
    await world.journal.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        state.mkdir(mode=0o700)
        asyncio.run(journal(state))
        live = LiveHost(Path(folder))
        live.start()
        try:
            with console_of(live.folder, live.keys) as console, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                link = console.link()
                page = browser.new_context(base_url=link.partition("/enter")[0]).new_page()
                page.goto(link)
                page.wait_for_url("**/approvals")
                seen = sorted(visible_after_ms(page, live))
                empty = [painted_after_ms(page, "/approvals") for _ in range(5)]
                timeline = [painted_after_ms(page, "/timeline") for _ in range(5)]
                nowhere = [painted_after_ms(page, "/timeline?text=nowhere") for _ in range(5)]
                fill(live)
                full = [painted_after_ms(page, "/approvals") for _ in range(5)]
                one = [painted_after_ms(page, "/approvals/many-09999") for _ in range(5)]
                browser.close()
        finally:
            live.stop()
    print(f"{'':42}{'median ms':>10}{'worst ms':>10}")
    for name, times in (
        ("a question is on the page after", seen),
        ("first paint, nothing waits", empty),
        (f"first paint, {limits.APPROVALS_OPEN_MAX} questions wait", full),
        ("first paint, one of them", one),
        (f"first paint, {OPERATIONS} operations", timeline),
        ("first paint, a word that none of them has", nowhere),
    ):
        print(f"{name:42}{statistics.median(times):10.0f}{max(times):10.0f}")


if __name__ == "__main__":
    main()
