"""Which calls an entry's doubts need, and what their answers change.

One table: for each kind of fact the call that asks it and the function that takes the answer. `plan` writes nothing
and `take` awaits nothing, so a pass over any number of entries is one batch on the wire. Nothing about a secret beyond
its role, name and place is ever asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from surehand import limits
from surehand.adapters.atspi import calls, entries, roles
from surehand.adapters.atspi.calls import Channel, Ref
from surehand.adapters.atspi.entries import Entry
from surehand.adapters.atspi.profile import Profile
from surehand.adapters.atspi.transport import Call, Failure, Reply

_EMBEDDED_OBJECT: Final = "\ufffc"


class Question(NamedTuple):
    """A call for one fact of one entry.

    `step` tells apart the calls of a fact that needs several; `parts` is how many calls of the last step make it up.
    """

    entry: Entry
    fact: int
    step: str
    call: Call
    parts: int = 1


class _Like(NamedTuple):
    """What objects have in common whose actions have the same names; `path` where nothing tells them apart."""

    number: int | None
    listed: tuple[tuple[str, str, str], ...]
    path: str


#: Facts whose absence leaves a node unreliable, and so marks it incomplete.
_ESSENTIAL: Final = entries.CORE | entries.CHILDREN | entries.TEXT
#: Facts that depend on role, interfaces or states, and are asked once those are known.
_DEPENDENT: Final = (
    entries.TEXT
    | entries.VALUE
    | entries.ACTIONS
    | entries.EXTENTS
    | entries.RELATIONS
    | entries.COLUMNS
    | entries.CHOICE
)
#: What `Properties.GetAll` tells at once.
_OWN_PROPERTIES: Final = entries.NAME | entries.DESCRIPTION | entries.IDENTIFIER
_BASE: Final = entries.ROLE | entries.INTERFACES | entries.STATES | entries.NAME

_PLAIN: Final[dict[int, Callable[[Channel, str], Call]]] = {
    entries.ROLE: lambda c, path: c.ask(path, calls.ACCESSIBLE, "GetRole"),
    entries.INTERFACES: lambda c, path: c.ask(path, calls.ACCESSIBLE, "GetInterfaces"),
    entries.STATES: lambda c, path: c.ask(path, calls.ACCESSIBLE, "GetState"),
    entries.NAME: lambda c, path: c.get(path, calls.ACCESSIBLE, "Name"),
    entries.DESCRIPTION: lambda c, path: c.get(path, calls.ACCESSIBLE, "Description"),
    entries.VALUE: lambda c, path: c.get(path, calls.VALUE, "CurrentValue"),
    entries.ACTIONS: lambda c, path: c.ask(path, calls.ACTION, "GetActions"),
    entries.RELATIONS: lambda c, path: c.ask(path, calls.ACCESSIBLE, "GetRelationSet"),
    entries.COLUMNS: lambda c, path: c.get(path, calls.TABLE, "NColumns"),
    entries.CHOICE: lambda c, path: c.ask(path, calls.SELECTION, "GetSelectedChild", "i", 0),
}
_INTERFACE_OF: Final[dict[int, str]] = {
    entries.VALUE: "Value",
    entries.ACTIONS: "Action",
    entries.EXTENTS: "Component",
    entries.COLUMNS: "Table",
}


class Reader:
    """Turns doubts into calls and answers into facts, for one application.

    Args:
        owner: The application's unique bus name; references to any other name are refused.
        channel: Where to ask.
        profile: The toolkit's rules.
        known: The application's entries by path, to see what an object is in.
        link: Takes an entry's children as read, and whether there are more.
    """

    def __init__(
        self,
        owner: str,
        channel: Channel,
        profile: Profile,
        known: Mapping[str, Entry],
        link: Callable[[Entry, list[Ref], bool], None],
    ) -> None:
        self.owner = owner
        self.channel = channel
        self.profile = profile
        self._known = known
        self._link = link
        self._parts: dict[tuple[str, int], list[Reply]] = {}
        #: Action names by what `GetActions` says, which is in the user's language: names are asked once each.
        self._naming: dict[_Like, list[Entry]] = {}
        self._action_names: dict[_Like, tuple[str, ...]] = {}

    def share_verbs(self, other: Reader) -> None:
        """Use the action names that another reader of the same application has learnt."""
        self._action_names = other._action_names

    def abandon(self) -> list[Entry]:
        """Forget answers that will not come; return the entries that waited for their actions' names."""
        waiting = [entry for likes in self._naming.values() for entry in likes]
        self._naming.clear()
        self._parts.clear()
        return waiting

    # --- asking -----------------------------------------------------------------------------------------------

    def plan(self, entry: Entry, facts: int) -> Iterator[Question]:
        """Yield the calls that settle these facts of an entry as far as possible now.

        Facts that do not apply are settled without a call. Facts that wait for others stay in doubt.
        """
        entry.doubt &= ~entry.mute
        asked = entry.doubt & facts
        at_once = _OWN_PROPERTIES if self.profile.get_all and asked & _OWN_PROPERTIES == _OWN_PROPERTIES else 0
        for fact in (entries.ROLE, entries.INTERFACES, entries.STATES, entries.NAME):
            if asked & fact & ~at_once:
                yield Question(entry, fact, "", _PLAIN[fact](self.channel, entry.path))
        if asked & entries.DESCRIPTION & ~at_once and not entry.doubt & entries.ROLE:
            if entry.role in roles.ANONYMOUS_ROLES:
                self._settle_absent(entry, entries.DESCRIPTION)
            else:
                yield Question(entry, entries.DESCRIPTION, "", _PLAIN[entries.DESCRIPTION](self.channel, entry.path))
        if at_once:  # after the role, which says what of this counts
            call = self.channel.ask(entry.path, calls.PROPERTIES, "GetAll", "s", calls.ACCESSIBLE)
            yield Question(entry, _OWN_PROPERTIES, "all", call)
        elif asked & entries.IDENTIFIER and not entry.doubt & entries.ROLE:
            yield from self._plan_identifier(entry)
        if asked & entries.CHILDREN:
            yield from self._plan_children(entry)
        if asked & _DEPENDENT and not entry.doubt & _BASE:
            yield from self._plan_dependent(entry, asked & _DEPENDENT)
        elif asked & entries.EXTENTS and entry.number >= 0 and not entry.doubt & entries.INTERFACES:
            # A place tells no secret, so it need not wait for the role; what changes whether it has one asks again.
            yield from self._plan_extents(entry)

    def _plan_identifier(self, entry: Entry) -> Iterator[Question]:
        if entry.role in roles.ANONYMOUS_ROLES:
            self._settle_absent(entry, entries.IDENTIFIER)
        elif self.profile.ids:
            call = self.channel.get(entry.path, calls.ACCESSIBLE, "AccessibleId")
            yield Question(entry, entries.IDENTIFIER, "id", call)
        elif self.profile.attribute_ids:
            call = self.channel.ask(entry.path, calls.ACCESSIBLE, "GetAttributes")
            yield Question(entry, entries.IDENTIFIER, "attributes", call)
        else:
            self._settle_absent(entry, entries.IDENTIFIER)

    def _plan_children(self, entry: Entry) -> Iterator[Question]:
        if self.profile.long_lists and entry.path != calls.ROOT_PATH:
            if entry.doubt & entries.ROLE:
                return
            if self.profile.leaf_items and entry.role in roles.LEAF_ROLES:
                entry.doubt &= ~entries.CHILDREN
                return
            if entry.role in roles.LONG_ROLES and not 0 < entry.count_hint <= limits.CHILDREN_READ_MAX:
                call = self.channel.get(entry.path, calls.ACCESSIBLE, "ChildCount")
                yield Question(entry, entries.CHILDREN, "count", call)
                return
        entry.count_hint = 0
        yield self.ask_children(entry)

    def ask_children(self, entry: Entry) -> Question:
        """Return the question for all children, whatever their number."""
        return Question(entry, entries.CHILDREN, "all", self.channel.ask(entry.path, calls.ACCESSIBLE, "GetChildren"))

    def _plan_dependent(self, entry: Entry, asked: int) -> Iterator[Question]:
        for fact in (entries.VALUE, entries.ACTIONS, entries.RELATIONS, entries.COLUMNS, entries.CHOICE):
            if asked & fact:
                if self._applies(entry, fact):
                    yield Question(entry, fact, "", _PLAIN[fact](self.channel, entry.path))
                else:
                    self._settle_absent(entry, fact)
        if asked & entries.EXTENTS:
            yield from self._plan_extents(entry)
        if asked & entries.TEXT:
            yield from self._plan_text(entry)

    def _plan_extents(self, entry: Entry) -> Iterator[Question]:
        if "Component" in entry.interfaces and entries.may_show(entry, self.profile):
            kind = calls.WINDOW_COORDINATES if self.profile.window_extents else calls.SCREEN_COORDINATES
            call = self.channel.ask(entry.path, calls.COMPONENT, "GetExtents", "u", kind)
            yield Question(entry, entries.EXTENTS, "", call)
        elif not entry.doubt & entries.STATES:
            self._settle_absent(entry, entries.EXTENTS)

    def _applies(self, entry: Entry, fact: int) -> bool:
        if fact == entries.RELATIONS:
            return entry.role in roles.FIELD_ROLES or (entry.role in roles.LABELLED_ROLES and not entry.name)
        if fact == entries.CHOICE:
            return entry.role == "combobox" and "Selection" in entry.interfaces
        if fact == entries.VALUE and (entry.is_password or self._is_in_secret(entry)):
            return False
        if fact == entries.ACTIONS and entry.role in self.profile.idle_roles:
            return False
        return _INTERFACE_OF[fact] in entry.interfaces

    def _plan_text(self, entry: Entry) -> Iterator[Question]:
        if not entries.is_text(entry) or self._is_in_secret(entry):
            self._settle_absent(entry, entries.TEXT)
            return
        yield Question(entry, entries.TEXT, "count", self.channel.get(entry.path, calls.TEXT, "CharacterCount"))
        if self.profile.range_clamps:
            yield self.ask_text(entry, limits.FIELD_BYTES_STORED_MAX)

    def _is_in_secret(self, entry: Entry) -> bool:
        """Return whether an object is a part of a secret field, as the text inside GTK's password entry is."""
        for _ in range(limits.SCENE_DEPTH_MAX):
            above = self._known.get(entry.parent)
            if above is None:
                return False
            if above.is_password:
                return True
            entry = above
        return False

    def ask_text(self, entry: Entry, chars: int) -> Question:
        """Return the question for the first characters of a text; `chars` must not be beyond its end on Qt."""
        call = self.channel.ask(entry.path, calls.TEXT, "GetText", "ii", 0, chars)
        return Question(entry, entries.TEXT, "text", call)

    def _settle_absent(self, entry: Entry, fact: int) -> None:
        entry.doubt &= ~fact
        if fact == entries.TEXT:
            self._set(entry, "text", None)
            self._set(entry, "text_chars", None)
        elif fact in _ABSENT:
            self._set(entry, *_ABSENT[fact])

    # --- answers ----------------------------------------------------------------------------------------------

    def take(self, question: Question, reply: Reply) -> Iterator[Question]:
        """Store an answer; yield the questions that it raises (never more than two steps deep).

        The doubt bit was cleared when the question was written, so that an event that arrives meanwhile sets it again.
        """
        entry, fact = question.entry, question.fact
        if question.step in _STEPS_IN_PARTS:
            yield from self._take_part(question, reply)
        elif isinstance(reply, Failure):
            self._take_failure(entry, fact, reply)
        else:
            entry.failed &= ~fact
            if fact == entries.TEXT:
                yield from self._take_text(question, reply)
            elif fact == entries.CHILDREN:
                yield from self._take_children(question, reply)
            elif fact == entries.ACTIONS:
                yield from self._take_actions(entry, reply)
            else:
                self._take_plain(question, reply)

    def _take_part(self, question: Question, reply: Reply) -> Iterator[Question]:
        """Collect the calls of one step; the fact is stored when the last is in."""
        entry, fact = question.entry, question.fact
        parts = self._parts.setdefault((entry.path, fact), [])
        parts.append(reply)
        if len(parts) < question.parts:
            return
        del self._parts[entry.path, fact]
        if question.step == "one":
            refs = [calls.reference(part) for part in parts]
            self._link(entry, [ref for ref in refs if ref is not None], True)
        elif question.step == "index":
            if [calls.integer(part) for part in parts] != list(range(len(parts))):
                yield self.ask_children(entry)
        else:
            yield from self._take_verbs(entry, parts)

    def _take_failure(self, entry: Entry, fact: int, failure: Failure) -> None:
        if not fact & _ESSENTIAL:
            self._settle_absent(entry, fact)
        elif not (entry.failed | entry.mute) & fact:
            entry.stamp += 1
        if failure.kind == "timeout":
            entry.mute |= fact
        elif fact & _ESSENTIAL:
            entry.failed |= fact

    def _take_plain(self, question: Question, reply: Reply) -> None:
        entry, fact = question.entry, question.fact
        if fact == entries.ROLE:
            self.set_role(entry, calls.integer(reply))
        elif fact == entries.INTERFACES:
            self.set_interfaces(entry, calls.strings(reply) or ())
        elif fact == entries.STATES:
            self.set_states(entry, calls.states(reply))
        elif fact == entries.NAME:
            self.set_name(entry, calls.string(reply) or "")
        elif fact == _OWN_PROPERTIES:
            self._take_properties(entry, calls.properties(reply))
        elif fact == entries.IDENTIFIER:
            self._take_identifier(question, reply)
        elif fact in _SIMPLE:
            field, parse = _SIMPLE[fact]
            self._set(entry, field, parse(reply))
        elif fact == entries.RELATIONS:
            found = (calls.relations(reply) or {}).get(roles.RELATION_LABELLED_BY, ())
            self._set(entry, "labelled_by", tuple(path for name, path in found if name == self.owner))
        else:
            chosen = calls.reference(reply)
            self._set(entry, "choice", chosen[1] if chosen and chosen[0] == self.owner else "")

    def _take_properties(self, entry: Entry, found: dict[str, object]) -> None:
        texts = {key: calls.cut(text) for key, text in found.items() if isinstance(text, str)}
        self.set_name(entry, texts.get("Name", ""))
        if entry.role in roles.ANONYMOUS_ROLES:
            texts = {}
        self._set(entry, "description", texts.get("Description", ""))
        self._set(entry, "identifier", texts.get("AccessibleId", ""))
        match found.get("Parent"):
            case [str(owner), str(path)]:
                entry.said_parent = (owner, path)

    def _take_identifier(self, question: Question, reply: Reply) -> None:
        if question.step == "id":
            self._set(question.entry, "identifier", calls.string(reply) or "")
        else:
            self._set(question.entry, "identifier", (calls.attributes(reply) or {}).get("id", ""))

    def _take_text(self, question: Question, reply: Reply) -> Iterator[Question]:
        entry = question.entry
        if question.step == "count":
            chars = max(0, calls.integer(reply) or 0)
            self._set(entry, "text_chars", chars)
            if not self.profile.range_clamps:
                if chars:
                    yield self.ask_text(entry, min(chars, limits.FIELD_BYTES_STORED_MAX))
                else:
                    self._set(entry, "text", "")
            return
        # Where other objects are embedded in a text there is a placeholder, which says nothing.
        raw = (calls.string(reply) or "").replace(_EMBEDDED_OBJECT, "")
        more = (entry.text_chars or 0) > limits.FIELD_BYTES_STORED_MAX
        self._set(entry, "text", calls.cut(raw, more=more))
        if self.profile.utf16_offsets and not more:
            self._set(entry, "text_chars", len(raw))

    def _take_children(self, question: Question, reply: Reply) -> Iterator[Question]:
        entry = question.entry
        if question.step == "all":
            refs = calls.references(reply)
            if refs is None:
                self._take_failure(entry, entries.CHILDREN, Failure("refused"))
            else:
                kept = list(refs[: limits.CHILDREN_READ_MAX])
                self._link(entry, kept, len(refs) > len(kept))
            return
        count = calls.integer(reply) or 0
        if self.profile.unstable_trees and entry.role == "tree" and count == len(entry.children) > 0:
            for path in entry.children:
                call = self.channel.ask(path, calls.ACCESSIBLE, "GetIndexInParent")
                yield Question(entry, entries.CHILDREN, "index", call, count)
            return
        if count <= limits.CHILDREN_READ_MAX:
            yield self.ask_children(entry)
            return
        for index in range(limits.CHILDREN_READ_MAX):
            call = self.channel.ask(entry.path, calls.ACCESSIBLE, "GetChildAtIndex", "i", index)
            yield Question(entry, entries.CHILDREN, "one", call, limits.CHILDREN_READ_MAX)

    def _take_actions(self, entry: Entry, reply: Reply) -> Iterator[Question]:
        listed = calls.actions(reply) or ()
        # Chromium gives its actions no name in the user's language: all its lists look alike and say nothing.
        key = _Like(entry.number, listed, "" if all(name for name, _, _ in listed) else entry.path)
        known = self._action_names.get(key)
        if not listed or known is not None:
            self._set(entry, "actions", known or ())
        elif key in self._naming:  # somebody like it is being asked
            self._naming[key].append(entry)
        else:
            self._naming[key] = [entry]
            for index in range(len(listed)):
                call = self.channel.ask(entry.path, calls.ACTION, "GetName", "i", index)
                yield Question(entry, entries.ACTIONS, "verb", call, len(listed))

    def _take_verbs(self, entry: Entry, parts: list[Reply]) -> Iterator[Question]:
        names = tuple(calls.string(part) or "" for part in parts)
        failed = any(isinstance(part, Failure) for part in parts)
        for key, waiting in list(self._naming.items()):
            if waiting[0] is not entry:
                continue
            del self._naming[key]
            if not failed and not key.path:
                self._action_names[key] = names
            for one in waiting:
                if one is entry or not failed:
                    self._set(one, "actions", () if failed else names)
                else:  # its like died while it was asked for all of them
                    yield Question(one, entries.ACTIONS, "", _PLAIN[entries.ACTIONS](self.channel, one.path))

    # --- facts ------------------------------------------------------------------------------------------------

    def set_role(self, entry: Entry, number: int | None) -> None:
        """Store a role; what depends on it is in doubt when it changes."""
        if number is not None and number != entry.number:
            entry.number = number
            entry.toolkit_role, entry.role = roles.role_of(number)
            entry.stamp += 1
            entry.doubt |= _DEPENDENT
            if entry.is_password:
                entry.text = entry.text_chars = entry.value = None

    def set_interfaces(self, entry: Entry, names: tuple[str, ...] | frozenset[str]) -> None:
        """Store interfaces by their short names; what depends on them is in doubt when they change."""
        short = frozenset(name.rpartition(".")[2] for name in names)
        if short != entry.interfaces:
            entry.interfaces = short
            entry.stamp += 1
            entry.doubt |= _DEPENDENT

    def set_states(self, entry: Entry, bits: int | None) -> None:
        """Store state bits; an object that begins or ends to show has another place."""
        if bits is not None and bits != entry.bits:
            before = entries.may_show(entry, self.profile)
            entry.bits = bits
            entry.stamp += 1
            if before != entries.may_show(entry, self.profile):
                entry.doubt |= entries.EXTENTS

    def set_name(self, entry: Entry, name: str) -> None:
        """Store a name; a class name that stands in for a missing one is none."""
        if self.profile.class_names and name.startswith("Gtk") and name.isalnum() and entry.role != "label":
            name = ""
        if self._set(entry, "name", name):
            entry.doubt |= entries.RELATIONS | (entries.TEXT if entry.role in roles.CAPTION_ROLES else 0)

    def set_core(self, entry: Entry, item: calls.CacheItem) -> None:
        """Store what one row of the toolkit's cache says."""
        self.set_role(entry, item.role)
        self.set_interfaces(entry, item.interfaces)
        self.set_states(entry, item.states)
        self.set_name(entry, item.name)
        self._set(entry, "description", "" if entry.role in roles.ANONYMOUS_ROLES else item.description)
        entry.doubt &= ~entries.CORE
        entry.failed &= ~entries.CORE
        # −1 where the toolkit does not count.
        entry.count_hint = item.child_count
        if item.child_count == 0 and entry.doubt & entries.CHILDREN:
            entry.doubt &= ~entries.CHILDREN
            self._link(entry, [], False)

    @staticmethod
    def _set(entry: Entry, field: str, value: object) -> bool:
        if getattr(entry, field) == value:
            return False
        setattr(entry, field, value)
        entry.stamp += 1
        return True


_ABSENT: Final[dict[int, tuple[str, object]]] = {
    entries.IDENTIFIER: ("identifier", ""),
    entries.DESCRIPTION: ("description", ""),
    entries.VALUE: ("value", None),
    entries.ACTIONS: ("actions", ()),
    entries.EXTENTS: ("extents", None),
    entries.RELATIONS: ("labelled_by", ()),
    entries.COLUMNS: ("columns", 0),
    entries.CHOICE: ("choice", ""),
}

_STEPS_IN_PARTS: Final = frozenset(["one", "index", "verb"])
_SIMPLE: Final[dict[int, tuple[str, Callable[[Reply], object]]]] = {
    entries.DESCRIPTION: ("description", lambda reply: calls.string(reply) or ""),
    entries.VALUE: ("value", calls.number),
    entries.EXTENTS: ("extents", calls.extents),
    entries.COLUMNS: ("columns", lambda reply: max(0, calls.integer(reply) or 0)),
}
