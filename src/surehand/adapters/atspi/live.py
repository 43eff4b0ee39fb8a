"""Nodes read straight from the application a moment ago, past every cache (spec §8.3).

Everything that goes into a node's identity and context is asked again in one batch; what the last read did not expect
(a text of another length, other actions, other interfaces) costs one more. A node whose object does not answer for
itself is dead: None. Taken over from earlier reads is only what its toolkit cannot change (`entries.fixed`).
"""

from __future__ import annotations

from collections.abc import Sequence

from surehand import limits
from surehand.adapters.atspi import calls, entries
from surehand.adapters.atspi.calls import ROOT_PATH, Ref
from surehand.adapters.atspi.entries import Entry
from surehand.adapters.atspi.geometry import Placement
from surehand.adapters.atspi.reading import Question, Reader
from surehand.adapters.atspi.roles import BIT_DEFUNCT
from surehand.adapters.atspi.transport import Call, Failure, Reply
from surehand.adapters.atspi.tree import ApplicationSilent, ApplicationTree
from surehand.model.scene import LiveNode

#: Rounds beyond the first for what the last read did not expect.
_ROUNDS_MAX = 4
#: What a stand-in takes over: what decides which calls are made, and what no call can tell.
_EXPECTED_FIELDS = ("number", "role", "toolkit_role", "interfaces", "bits", "name", "columns", "children", "modal")
_LIVE = entries.FRESH & ~entries.CHILDREN
#: What of a node that is only around another one tells nothing of what that means.
_INDIFFERENT = entries.ACTIONS | entries.RELATIONS | entries.COLUMNS


class LiveReader:
    """Reads some nodes of one application afresh; keeps nothing."""

    def __init__(self, tree: ApplicationTree) -> None:
        self._tree = tree
        self._reader = Reader(tree.owner, tree.reader.channel, tree.profile, tree.entries, lambda *_: None)
        self._reader.share_verbs(tree.reader)
        #: Which facts are read of each node.
        self._wanted: dict[str, int] = {}

    async def read(self, paths: Sequence[str], around: Sequence[str] = ()) -> Live:
        """Read each path; of those in `around` no more than a fence compares.

        Raises:
            ApplicationSilent: the application did not answer.
        """
        fresh = {path: self._stand_in(path, _LIVE) for path in dict.fromkeys(paths)}
        facts = _LIVE & ~_INDIFFERENT
        if not self._tree.profile.shows_by_size:
            facts &= ~entries.EXTENTS
        fresh |= {path: self._stand_in(path, facts) for path in dict.fromkeys(around) if path not in fresh}
        chain = self._chain(fresh)
        questions = [question for entry in fresh.values() for question in self._expect(entry)]
        questions += [question for entry in chain.values() for question in self._expect_states(entry)]
        # Where all properties come in one answer the parent is among them.
        asked = [] if self._tree.profile.get_all else list(fresh)
        replies = await self._ask([*map(self._ask_parent, asked), *(question.call for question in questions)])
        await self._settle(questions, replies[len(asked) :], fresh)
        above = {path: calls.reference(reply) for path, reply in zip(asked, replies, strict=False)}
        listing = await self._who_lists(fresh, above or {path: entry.said_parent for path, entry in fresh.items()})
        return Live(self._tree, fresh, fresh | chain, listing)

    async def _who_lists(self, fresh: dict[str, Entry], above: dict[str, Ref | None]) -> dict[str, Ref]:
        """Return who lists each node now.

        Toolkits name other parents than they list children for (the page of a GTK 3 notebook hangs on its tab and
        names the notebook). What counts is where the tree shows a node, so its lister is asked when the two differ.
        """
        found = {path: ref for path, ref in above.items() if ref is not None}
        doubtful = [path for path, ref in found.items() if fresh[path].parent not in {"", ROOT_PATH, ref[1]}]
        if not doubtful:
            return found
        listers = list(dict.fromkeys(fresh[path].parent for path in doubtful))
        channel = self._reader.channel
        replies = await self._ask([channel.ask(path, calls.ACCESSIBLE, "GetChildren") for path in listers])
        listed = {path: calls.references(reply) or () for path, reply in zip(listers, replies, strict=True)}
        for path in doubtful:
            if (self._tree.owner, path) in listed[fresh[path].parent]:
                found[path] = (self._tree.owner, fresh[path].parent)
        return found

    async def _ask(self, wanted: list[Call]) -> list[Reply]:
        replies = await self._reader.channel.call_many(wanted)
        if any(isinstance(reply, Failure) and reply.kind != "refused" for reply in replies):
            raise ApplicationSilent("the application did not answer in time", details={"application": self._tree.owner})
        return replies

    def _ask_parent(self, path: str) -> Call:
        return self._reader.channel.get(path, calls.ACCESSIBLE, "Parent")

    def _stand_in(self, path: str, facts: int) -> Entry:
        """Return an entry that expects what the maintained tree knows and believes none of it."""
        known = self._tree.entries.get(path)
        entry = Entry(path, "" if known is None else known.parent)
        if known is not None:
            for field in _EXPECTED_FIELDS:
                setattr(entry, field, getattr(known, field))
            if known.number >= 0 and known.interfaces and not known.doubt & (entries.ROLE | entries.INTERFACES):
                facts &= ~entries.fixed(self._tree.profile)
        self._wanted[path] = entry.doubt = facts
        return entry

    def _chain(self, fresh: dict[str, Entry]) -> dict[str, Entry]:
        """Return stand-ins for the ancestors, where a toolkit's states of a node depend on them."""
        profile = self._tree.profile
        if not (profile.visible_is_showing or profile.sensitive_is_enabled or profile.showing_by_chain):
            return {}
        found: dict[str, Entry] = {}
        for entry in fresh.values():
            path = entry.parent
            for _ in range(limits.SCENE_DEPTH_MAX):
                known = self._tree.entries.get(path)
                if known is None or path == ROOT_PATH or path in found:
                    break
                if path not in fresh:
                    found[path] = self._stand_in(path, _LIVE)
                    found[path].extents = known.extents
                path = known.parent
        return found

    def _expect_states(self, entry: Entry) -> list[Question]:
        entry.doubt = entries.STATES
        questions = list(self._reader.plan(entry, entries.STATES))
        entry.doubt = 0
        return questions

    def _expect(self, entry: Entry) -> list[Question]:
        """Return every call for an entry as if what is expected of it were known."""
        properties = (
            entries.NAME | entries.DESCRIPTION | entries.IDENTIFIER if self._tree.profile.get_all else entries.NAME
        )
        core = list(self._reader.plan(entry, entries.CORE | properties))
        if entry.number < 0:
            return core
        entry.doubt &= ~(entries.ROLE | entries.INTERFACES | entries.STATES | properties)
        rest = list(self._reader.plan(entry, self._wanted[entry.path]))
        entry.doubt = 0
        return core + rest

    async def _settle(self, questions: list[Question], replies: list[Reply], fresh: dict[str, Entry]) -> None:
        for question in questions:
            question.entry.doubt &= ~question.fact
        for _ in range(_ROUNDS_MAX):
            further: list[Question] = []
            for question, reply in zip(questions, replies, strict=True):
                further.extend(self._reader.take(question, reply))
            questions = further
            if not questions:
                questions = [question for entry in fresh.values() for question in self._again(entry)]
            if not questions:
                return
            replies = await self._ask([question.call for question in questions])

    def _again(self, entry: Entry) -> list[Question]:
        if entry.failed & entries.CORE:
            return []
        questions = list(self._reader.plan(entry, self._wanted[entry.path]))
        for question in questions:
            entry.doubt &= ~question.fact
        return questions


class Live:
    """What was read: becomes nodes once it is known where the window is."""

    def __init__(
        self, tree: ApplicationTree, fresh: dict[str, Entry], known: dict[str, Entry], listing: dict[str, Ref]
    ) -> None:
        self._tree = tree
        self._fresh = fresh
        self._known = known
        self._listing = listing

    def nodes(self, placement: Placement) -> dict[str, LiveNode | None]:
        """Return a live node for each path, or None where the object is dead."""
        return {
            path: self._live(entry, self._listing.get(path), self._known, placement)
            for path, entry in self._fresh.items()
        }

    def _live(self, entry: Entry, parent: Ref | None, known: dict[str, Entry], placement: Placement) -> LiveNode | None:
        if entry.failed & entries.CORE or parent is None or entry.bits & BIT_DEFUNCT:
            return None
        around = self._tree.shape.around(entry, known)
        node = entries.node_of(entry, around, owner=self._tree.owner, placement=placement)
        name, path = parent
        return LiveNode(node=node, parent="" if path in {calls.NULL_PATH, ROOT_PATH} else name + path)
