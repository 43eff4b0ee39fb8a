"""The maintained tree of one application: what is known, what is in doubt, and what a window looks like now.

Promises: a fact is served only if it was read after the last event that cast doubt on it; a node that does not answer
costs that node; an unchanged node is the same object in the next tree; the version of a window's tree grows with every
change and never without one. Bounds: `limits.SCENE_NODES_MAX`, `SCENE_DEPTH_MAX`, `CHILDREN_READ_MAX`; what they cut
is said (`complete=False`). Nothing here waits for a particular application's events: `refresh` reads what is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from surehand import limits
from surehand.adapters.atspi import calls, entries, roles
from surehand.adapters.atspi.calls import ROOT_PATH, Channel, Ref
from surehand.adapters.atspi.entries import Entry
from surehand.adapters.atspi.geometry import Placement
from surehand.adapters.atspi.profile import Profile
from surehand.adapters.atspi.reading import Question, Reader
from surehand.adapters.atspi.shape import Shape
from surehand.adapters.atspi.transport import Failure, Reply
from surehand.errors import Unavailable
from surehand.model.scene import Tree

#: Rounds of one refresh. A tree that still changes after so many is served as it stands, with its doubts kept.
_ROUNDS_MAX: Final = 3 * limits.SCENE_DEPTH_MAX


class ApplicationSilent(Unavailable):
    """The application did not answer within its own time-out, or its connection ended."""


#: A bar with another value has moved what it scrolls. GTK 4 hangs the value on a filler inside the bar.
_SCROLLING_ROLES: Final = frozenset(["filler", "scrollbar"])


def _memo_for(window: str | None) -> dict[str, bool]:
    """Return what is known of who is in a window; good for one round, because parents change."""
    return {ROOT_PATH: False} if window is None else {ROOT_PATH: False, window: True}


def _may_hold(entry: Entry) -> bool:
    return bool(entry.children) or entry.role in roles.CONTAINER_ROLES


class Built(NamedTuple):
    """A window's tree, and what it was built from."""

    tree: Tree
    revision: int
    placement: Placement


class ApplicationTree:
    """Everything known of one application.

    Args:
        owner: Its unique bus name.
        channel: Where it is read.
        profile: Its toolkit's rules.
    """

    def __init__(self, owner: str, channel: Channel, profile: Profile) -> None:
        self.owner = owner
        self.profile = profile
        self.entries: dict[str, Entry] = {ROOT_PATH: Entry(ROOT_PATH, "")}
        self.reader = Reader(owner, channel, profile, self.entries, self._link)
        self.shape = Shape(owner, profile, self.entries)
        #: Paths of entries in doubt, in the order of their doubts; an entry that is not here has `doubt == 0`.
        self.doubted: dict[str, None] = {ROOT_PATH: None}
        #: Grows with every changed fact or link of any entry.
        self.revision = 0
        self._orphans: set[str] = set()
        self._moved: set[str] = set()
        self._added: dict[str, calls.CacheItem] = {}
        self._failed: set[str] = set()
        self._expected: dict[str, tuple[str, ...]] = {}
        self._places: dict[str, object] = {}
        #: Grows when an object that signalled its place for the first time turns out to be elsewhere.
        self.moved = 0
        self._first_placed: set[str] = set()
        self._pruned_at = 0
        self._structure = 0
        self._built: dict[str, Built] = {}
        self._bulk_done = False

    # --- doubt ------------------------------------------------------------------------------------------------

    def doubt(self, path: str, facts: int) -> bool:
        """Mark facts of an object as in doubt; false when the object is not known."""
        entry = self.entries.get(path)
        if entry is None:
            return False
        entry.doubt |= facts
        self.doubted[path] = None
        return True

    def doubt_children(self, path: str, facts: int) -> None:
        """Mark facts of every known child of an object as in doubt."""
        entry = self.entries.get(path)
        if entry is not None:
            for child in entry.children:
                self.doubt(child, facts)

    def doubt_subtree(self, path: str, facts: int) -> None:
        """Mark facts of an object and of all that is known below it as in doubt."""
        for entry in self._walk(path):
            entry.doubt |= facts
            self.doubted[entry.path] = None

    def doubt_places(self, window: str) -> None:
        """Mark the places of everything in a window that may be showing as in doubt."""
        self._doubt_each(window, lambda entry: entries.EXTENTS if entries.may_show(entry, self.profile) else 0)

    def take_place(self, path: str, place: object) -> bool:
        """Take the place that an object signals; true when it is another than it last signalled.

        Toolkits signal every object that they lay out again, and most stay where they are. What moves takes its
        parent's other children with it, which need not be objects that signal. A first signal has nothing to be
        compared with, because toolkits count signalled places from elsewhere than asked ones: the object is asked, and
        `moved` grows if it is elsewhere.
        """
        before = self._places.get(path)
        if before == place:
            return False
        if len(self._places) >= limits.SCENE_NODES_MAX:
            self._places.clear()
        self._places[path] = place
        entry = self.entries.get(path)
        if before is None and entry is not None and entry.extents is not None and not entry.doubt & entries.EXTENTS:
            self._first_placed.add(path)
            self.doubt(path, entries.EXTENTS)
            return False
        self._doubt_around(path)
        return True

    def _doubt_around(self, path: str) -> None:
        """Doubt the places of what moves with an object."""
        entry = self.entries.get(path)
        if entry is not None:
            self.doubt_places(entry.parent if entry.parent != ROOT_PATH else path)

    def doubt_containers(self, window: str) -> None:
        """Mark the children of everything in a window that has some or could have as in doubt."""
        self._doubt_each(window, lambda entry: entries.CHILDREN if _may_hold(entry) else 0)

    def doubt_states(self, window: str) -> None:
        """Mark the states of whatever may hold the focus, or may have come to show, as in doubt."""

        def facts_of(entry: Entry) -> int:
            if entry.bits & roles.BIT_FOCUSABLE or entry.role == "filler":
                return entries.STATES
            return 0 if entries.may_show(entry, self.profile) else entries.STATES

        self._doubt_each(window, facts_of)

    def doubt_values(self, window: str) -> None:
        """Mark the values of everything in a window that has one as in doubt."""
        self._doubt_each(window, lambda entry: entries.VALUE if "Value" in entry.interfaces else 0)

    def doubt_unsignalled(self, window: str) -> None:
        """Mark what a toolkit without complete signals may have changed in silence as in doubt."""

        def facts_of(entry: Entry) -> int:
            # What is hidden is read when it shows, all of it; a closed menu may hold a hundred items.
            if not entries.may_show(entry, self.profile):
                return 0
            facts = entries.STATES | entries.NAME if entry.role in roles.SILENT_ROLES else 0
            # The viewport of a text takes the focus with it, and says nothing.
            if entry.bits & roles.BIT_FOCUSED or entry.role == "filler":
                facts |= entries.STATES
            return facts | (entries.CHILDREN if _may_hold(entry) else 0)

        self._doubt_each(window, facts_of)

    def _doubt_each(self, window: str, facts_of: Callable[[Entry], int]) -> None:
        for entry in self._walk(window):
            facts = facts_of(entry)
            if facts:
                entry.doubt |= facts
                self.doubted[entry.path] = None

    def doubt_all(self) -> None:
        """Forget that anything was read: everything is in doubt."""
        for entry in self.entries.values():
            entry.doubt = entries.FRESH
        self.doubted.update(dict.fromkeys(self.entries))
        self._bulk_done = False

    def doubt_parent_of(self, path: str) -> None:
        """An object that is not known says something: find out where it belongs at the next refresh."""
        self._added.pop(path, None)  # it has changed since it was announced
        if len(self._orphans) < limits.CHILDREN_READ_MAX:
            self._orphans.add(path)

    def doubt_moved(self, path: str) -> None:
        """A known object has another parent: find out which at the next refresh."""
        self._moved.add(path)

    def doubt_added(self, item: calls.CacheItem) -> None:
        """An object says that it is new, or that somebody looked at it for the first time."""
        if len(self._added) < limits.CHILDREN_READ_MAX:
            self._added[item.ref[1]] = item

    def know_modal(self, window: str, modal: bool) -> None:
        """Take what somebody else than the toolkit knows of a window."""
        entry = self.entries.get(window)
        if entry is not None and entry.modal != modal:
            entry.modal = modal
            entry.stamp += 1
            self.revision += 1

    def _walk(self, path: str) -> Iterator[Entry]:
        seen: set[str] = set()
        waiting = [path]
        while waiting:
            here = waiting.pop()
            entry = self.entries.get(here)
            if entry is None or here in seen:
                continue
            seen.add(here)
            yield entry
            waiting.extend(entry.children)

    def window_of(self, path: str) -> str | None:
        """Return the top-level window that an object is in."""
        for _ in range(limits.SCENE_DEPTH_MAX + 2):
            entry = self.entries.get(path)
            if entry is None or not entry.parent:
                return None
            if entry.parent == ROOT_PATH:
                return path
            path = entry.parent
        return None

    def is_busy(self, window: str) -> bool:
        """Return whether a window, or a document in it, says that it is busy loading."""
        return any(
            entry.bits & roles.BIT_BUSY
            for entry in self.entries.values()
            if entry.path == window or (entry.role == "document" and self.window_of(entry.path) == window)
        )

    def expect_items(self, other: ApplicationTree) -> None:
        """Take over the items of tree views, which must not be listed again unless they changed."""
        for entry in other.entries.values():
            if entry.role == "tree" and entry.children:
                self._expected[entry.path] = entry.children

    # --- reading ----------------------------------------------------------------------------------------------

    async def refresh_windows(self) -> None:
        """Read what is in doubt of the list of windows and of their own facts."""
        await self._refresh(None)

    async def refresh(self, window: str) -> None:
        """Read what is in doubt of a window and all that is in it.

        Raises:
            ApplicationSilent: it did not answer; what is in doubt stays in doubt.
        """
        if self.doubted and not self._bulk_done:
            self._bulk_done = True
            await self._read_bulk()
        await self._refresh(window)

    def _facts_of_windows(self, entry: Entry) -> int:
        if entry.path == ROOT_PATH:
            return entries.CHILDREN
        return entries.WINDOW_FACTS if entry.parent == ROOT_PATH else 0

    def _is_in(self, path: str, memo: dict[str, bool]) -> bool:
        climbed: list[str] = []
        found = False
        for _ in range(limits.SCENE_DEPTH_MAX + 2):
            if path in memo:
                found = memo[path]
                break
            climbed.append(path)
            entry = self.entries.get(path)
            if entry is None:
                break
            path = entry.parent
        memo.update(dict.fromkeys(climbed, found))
        return found

    async def _refresh(self, window: str | None) -> None:
        await self._place_orphans()
        self._doubt_failed()
        for _ in range(_ROUNDS_MAX):
            questions = self._plan(window)
            if not questions:
                break
            while questions:
                questions = await self._ask(questions)
        self._prune()

    def _plan(self, window: str | None) -> list[Question]:
        questions: list[Question] = []
        memo = _memo_for(window)
        for path in list(self.doubted):
            entry = self.entries.get(path)
            if entry is None:
                self.doubted.pop(path, None)
                continue
            facts = self._facts_of_windows(entry)
            if window is not None:
                facts = entries.FRESH if self._is_in(path, memo) else 0
            if facts:
                questions.extend(self.reader.plan(entry, facts))
            if not entry.doubt:
                self.doubted.pop(path, None)
        return questions

    async def _ask(self, questions: list[Question]) -> list[Question]:
        """Ask, store the answers, and return the questions that they raise."""
        further: list[Question] = []
        for question, reply in zip(questions, await self._replies(questions), strict=True):
            entry = question.entry
            before, failed, value, extents = entry.stamp, entry.failed, entry.value, entry.extents
            further.extend(self.reader.take(question, reply))
            if question.fact == entries.EXTENTS and entry.path in self._first_placed:
                self._first_placed.discard(entry.path)
                if entry.extents != extents:
                    self.moved += 1
                    self._doubt_around(entry.path)
            if entry.failed & ~failed:  # it may just have gone: ask whoever lists it
                self._failed.add(entry.path)
                self.doubt(entry.parent, entries.CHILDREN)
            if entry.stamp != before:
                self.revision += 1
                if value not in {None, entry.value} and entry.role in _SCROLLING_ROLES:
                    self.doubt_places(self.window_of(entry.path) or entry.path)
            if entry.doubt:
                self.doubted[entry.path] = None
        return further

    async def _replies(self, questions: list[Question]) -> list[Reply]:
        """Write the questions at once; what they ask is in doubt again if the answers do not come.

        The doubts end when the questions are written, so that a signal that arrives meanwhile casts them anew.
        """
        for question in questions:
            question.entry.doubt &= ~question.fact
            if not question.entry.doubt:
                self.doubted.pop(question.entry.path, None)
        try:
            replies = await self.reader.channel.call_many([question.call for question in questions])
            await self._check(replies)
        except BaseException:  # silent, or whoever waited was cancelled: nothing of this was read
            for question in questions:
                self.doubt(question.entry.path, question.fact)
            for entry in self.reader.abandon():
                self.doubt(entry.path, entries.ACTIONS)
            raise
        return replies

    async def _check(self, replies: list[Reply]) -> None:
        """Tell an application that is silent from objects that never answer.

        Answers come in the order of calls, so a call before one that was answered is a call that never will be. After
        the last answer one more question to its root decides.
        """
        answered = [isinstance(reply, list) or reply.kind == "refused" for reply in replies]
        if all(answered):
            return
        lost = any(isinstance(reply, Failure) and reply.kind not in {"refused", "timeout"} for reply in replies)
        if lost or not (answered[-1] or await self._still_answers()):
            raise ApplicationSilent("the application did not answer in time", details={"application": self.owner})

    async def _still_answers(self) -> bool:
        # No ping: GTK 4 and Qt answer those on a thread of their own while their main loop is stuck.
        channel = self.reader.channel
        question = [channel.ask(ROOT_PATH, calls.ACCESSIBLE, "GetRole")]
        return isinstance((await channel.call_many(question, timeout_ms=limits.APP_PATIENCE_MS))[0], list)

    def _doubt_failed(self) -> None:
        """What was refused is asked again, once in each refresh, and so is whoever lists it."""
        for path in list(self._failed):
            entry = self.entries.get(path)
            if entry is None or not entry.failed:
                self._failed.discard(path)
                continue
            self.doubt(path, entry.failed)
            self.doubt(entry.parent, entries.CHILDREN)

    async def _place_orphans(self) -> None:
        """Find the nearest known ancestors of unknown objects; their children have changed."""
        self._link_added()
        orphans = {path for path in self._orphans if path not in self.entries} | self._moved
        self._orphans, self._moved = set(), set()
        asked: set[str] = set()
        while orphans and len(asked) <= limits.CHILDREN_READ_MAX:
            asked |= orphans
            channel = self.reader.channel
            replies = await channel.call_many([channel.get(path, calls.ACCESSIBLE, "Parent") for path in orphans])
            parents = {ref[1] for reply in replies if (ref := calls.reference(reply)) and ref[0] == self.owner}
            orphans = {path for path in parents - asked if not self.doubt(path, entries.CHILDREN)}

    def _link_added(self) -> None:
        """Doubt the parents that do not list what was added; a walk of ours makes GTK 4 announce all that it meets."""
        added, self._added = self._added, {}
        for path, item in added.items():
            entry, parent = self.entries.get(path), item.parent[1]
            if (entry is None or entry.parent != parent) and not self.doubt(parent, entries.CHILDREN):
                self._orphans.add(path)

    async def _read_bulk(self) -> None:
        """Take core facts from the toolkit's own cache in one call; what it lacks stays in doubt (C41)."""
        if not self.profile.bulk:
            return
        channel = self.reader.channel
        reply = (await channel.call_many([channel.ask(calls.CACHE_PATH, calls.CACHE, "GetItems")]))[0]
        for item in calls.cache_items(reply) or ():
            if item.ref[0] == self.owner and item.ref[1] != ROOT_PATH:
                self._store(item)

    def _store(self, item: calls.CacheItem) -> None:
        path = item.ref[1]
        entry = self.entries.get(path)
        if entry is None:
            if len(self.entries) >= limits.SCENE_NODES_MAX:
                return
            entry = self.entries[path] = Entry(path, item.parent[1])
            self.doubted[path] = None
        if entry.doubt & entries.CORE:
            self.reader.set_core(entry, item)
            self.revision += 1

    # --- structure --------------------------------------------------------------------------------------------

    def _link(self, entry: Entry, refs: list[Ref], cut: bool) -> None:
        """Take an entry's children: those of others, of itself or above it are refused."""
        above = self._ancestors(entry)
        children: list[str] = []
        for name, path in refs:
            if name != self.owner or path in above or path == calls.NULL_PATH:
                cut = True
                continue
            if path not in self.entries:
                if len(self.entries) >= limits.SCENE_NODES_MAX or len(above) > limits.SCENE_DEPTH_MAX:
                    cut = True
                    continue
                self._adopt(path, entry.path)
            child = self.entries[path]
            if child.parent != entry.path:
                self.doubt(child.parent, entries.CHILDREN)
                child.parent = entry.path
                child.stamp += 1
            if child.doubt:
                self.doubted[path] = None
            children.append(path)
        found = tuple(dict.fromkeys(children))
        if found != entry.children or cut != entry.children_cut:
            had_children, entry.children, entry.children_cut = bool(entry.children), found, cut
            if had_children:
                self.doubt_places(entry.path)
            entry.stamp += 1
            self._structure += 1
            if entry.role in roles.GRID_ROLES:
                self.doubt(entry.path, entries.COLUMNS)

    def _adopt(self, path: str, parent: str) -> None:
        """Make the entry of a new child, with what it said of itself just now."""
        entry = self.entries[path] = Entry(path, parent)
        item = self._added.pop(path, None)
        if item is not None:
            self.reader.set_core(entry, item)
        expected = self._expected.get(path, ())
        entry.children = entry.children or expected
        for child in expected:
            self.entries.setdefault(child, Entry(child, path))
            self.doubted[child] = None

    def _ancestors(self, entry: Entry) -> set[str]:
        above = {entry.path}
        while entry.parent and entry.parent not in above:
            above.add(entry.parent)
            found = self.entries.get(entry.parent)
            if found is None:
                break
            entry = found
        return above

    def _prune(self) -> None:
        """Forget what hangs on nothing any more, and what was said of it."""
        if self._pruned_at == self._structure:
            return
        self._pruned_at = self._structure
        kept = {entry.path for entry in self._walk(ROOT_PATH)}
        gone = self.entries.keys() - kept
        for path in gone:
            del self.entries[path]
        self.doubted = {path: None for path in self.doubted if path in kept}
        for entry in self.entries.values():
            if not gone.isdisjoint(entry.labelled_by) or entry.choice in gone:
                self.doubt(entry.path, entries.RELATIONS | entries.CHOICE)
        self._places = {path: place for path, place in self._places.items() if path in kept}
        self._first_placed &= kept
        self._built = {window: built for window, built in self._built.items() if window in kept}

    # --- building ---------------------------------------------------------------------------------------------

    def was_built(self, window: str) -> bool:
        """Whether a window's tree was served before."""
        return window in self._built

    def build(self, window: str, placement: Placement) -> Tree:
        """Return a window's tree from what is known; the very same one when nothing changed."""
        before = self._built.get(window)
        if before is not None and before.revision == self.revision and before.placement == placement:
            return before.tree
        nodes, parents, complete = self.shape.flatten(window, placement)
        tree = None if before is None else before.tree
        if tree is None or tree.nodes != nodes or tree.parents != parents or tree.complete != complete:
            version = 1 if tree is None else tree.version + 1
            tree = Tree(nodes=nodes, parents=parents, version=version, complete=complete, trust=self.profile.trust)
        self._built[window] = Built(tree, self.revision, placement)
        return tree
