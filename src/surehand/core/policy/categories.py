"""What a request is, beyond what it says of itself: its effect's name, its risk, its consequential categories.

Guarantees: nothing here ever lowers anything; what was learned from the screen is kept apart from what is proven, so
that policy can be decided with and without it (spec §6.1, §6.2).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from surehand import limits
from surehand.core.policy import own, proof
from surehand.core.policy.model import RISKS, Risk
from surehand.core.policy.vocabulary import AppLists
from surehand.core.risk import controls
from surehand.core.risk.controls import Control
from surehand.core.risk.words import Words
from surehand.model.actions import (
    Action,
    App,
    Click,
    Clipboard,
    Dialog,
    History,
    Navigate,
    Open,
    Perform,
    Press,
    SelectOption,
    Tab,
    Upload,
    Window,
    kind_of,
    secret_of,
)
from surehand.model.decision import Proven
from surehand.model.scene import AppIdentity
from surehand.model.targets import SurfaceTarget, Target

PROCESS_RUN: Final = "process.run"
OWN_SURFACE: Final = "own_surface"

_BROWSER_KINDS: Final = frozenset({"navigate", "history", "tab", "upload", "dialog"})
# As tuples: a union would be put together again at every question.
_OPERATED: Final = (App, Window, Clipboard, History, Tab, Dialog)
_ADDRESSED: Final = (Navigate, Tab)
#: Whose parameters may say of what category they are; the others are not asked.
_TELLING: Final = frozenset({Upload, Open, Navigate, Tab, Perform, SelectOption})
_ENTERING: Final = frozenset({"set_value", "type_text", "paste"})
_TYPING: Final = _ENTERING | {"press"}
_ACTIVATING: Final = frozenset({"invoke", "click", "perform", "toggle", "select_option", "press", "dialog"})

#: The least risk of each action kind; what an agent declares cannot go below it.
_READING: Final = frozenset({"screenshot", "physical_state", "abort"})

#: Categories of what reaches beyond this desktop.
_EXTERNAL: Final = frozenset({"external", "process_run", "purchase", "send_publish", "upload"})

#: Files that run when they are opened.
_RUNS_WHEN_OPENED: Final = re.compile(
    r"\.(?:desktop|sh|bash|run|bin|appimage|jar|py|pl|rb|exe|msi|bat|deb|rpm|flatpakref)$", re.IGNORECASE
)

_TITLE_DASH: Final = re.compile(r"\s[-–—|]\s")
_WM_MODIFIERS: Final = frozenset({"super", "super_l", "super_r", "meta", "meta_l", "meta_r", "win", "cmd", "command",
                                  "logo", "hyper", "os", "osleft", "osright", "metaleft", "metaright"})  # fmt: skip
_WM_WITH_ALT: Final = re.compile(r"f\d{1,2}|tab|space|escape|esc|grave|backquote|`|print|sys_req|printscreen")
_ALT: Final = frozenset({"alt", "alt_l", "altleft", "option"})
_CONTROL: Final = frozenset({"ctrl", "control", "control_l", "control_r", "controlleft", "controlright"})


class AppClass(msgspec.Struct, frozen=True, kw_only=True):
    """What kind of application it is: proven by its process, and what it merely claims."""

    proven: frozenset[Proven] = frozenset()
    claimed: frozenset[str] = frozenset()
    runs_commands: bool = False
    claims_to_run_commands: bool = False


@functools.lru_cache(maxsize=limits.APPS_CLASSIFIED_MAX)
def classify_app(
    apps: AppLists,
    identity: AppIdentity,
    *,
    claimed: tuple[str, ...] = (),
    denied_tokens: frozenset[str] = frozenset(),
    own_pids: frozenset[int] = frozenset(),
) -> AppClass:
    """Say what kind of application this is; worked out once for as long as it calls itself the same.

    Args:
        apps: The lists.
        identity: As proven by pid.
        claimed: What it says of itself: window class, name, title. May only deny.
        denied_tokens: Of the operator, without case; equal to an identity, a path, a file name or a claimed name.
        own_pids: Surehand's own processes and the terminals that run them.
    """
    names = identity_names(identity)
    claims = {part.strip() for text in (identity.claimed_name, *claimed) for part in _title_parts(text)}
    proven, observed = set(), set()
    if identity.pid in own_pids:
        proven.add(OWN_SURFACE)
    if claims_console(identity.claimed_name, *claimed):
        observed.add(OWN_SURFACE)
    if names & denied_tokens:
        proven.add("denied_app")
    if claims & denied_tokens:
        observed.add("denied_app")
    if names & apps.sensitive:
        proven.add("sensitive_app")
    if claims & (apps.sensitive_claimed | apps.sensitive):
        observed.add("sensitive_app")
    return AppClass(
        proven=proof.categories(proven),
        claimed=frozenset(observed),
        runs_commands=bool(names & (apps.terminals | apps.run_dialogs)),
        claims_to_run_commands=bool(claims & (apps.terminals_claimed | apps.run_dialogs_claimed)),
    )


def claims_console(*texts: str) -> bool:
    """Say whether what a window or its application calls itself is the console page's name."""
    return any(part.strip() == own.CONSOLE_TITLE for text in texts for part in _title_parts(text))


def _title_parts(text: str) -> tuple[str, ...]:
    """Return a claimed name or title, and what stands between its dashes: `vault.kdbx - KeePassXC` claims KeePassXC."""
    whole = text.casefold()
    return (whole, *_TITLE_DASH.split(whole)) if whole else ()


def identity_names(identity: AppIdentity) -> frozenset[str]:
    """Return every proven name of an application, without case: key, paths, and their last parts."""
    paths = [path for path in (identity.executable, identity.script) if path]
    names = [identity.key, *paths, *(path.rsplit("/", 1)[-1] for path in paths)]
    return frozenset(name.casefold() for name in names if name)


def classify_launch(apps: AppLists, name: str, denied_tokens: frozenset[str] = frozenset()) -> AppClass:
    """Say what would be launched under this name: an executable or a desktop file id."""
    last = name.rsplit("/", 1)[-1].casefold()
    names = {name.casefold(), last, last.removesuffix(".desktop")}
    proven = {"denied_app"} if names & denied_tokens else set()
    if names & apps.sensitive:
        proven.add("sensitive_app")
    return AppClass(proven=proof.categories(proven), runs_commands=bool(names & (apps.terminals | apps.run_dialogs)))


def effect_name(action: Action, target: Target, *, browser: bool, runs_commands: bool) -> str:
    """Return the effect's name as policies and ceilings spell it, such as `desktop.window.close`.

    Running a program by any road is `process.run`: typing into a terminal or a run dialog, a chord that the window
    manager takes, launching an executable or anything with arguments.
    """
    kind = kind_of(action)
    if _runs(action, kind, runs_commands=runs_commands):
        return PROCESS_RUN
    prefix = "browser" if browser or kind in _BROWSER_KINDS else "desktop"
    if isinstance(action, _OPERATED):
        return f"{prefix}.{kind}.{action.op}"
    if kind == "screenshot":
        return f"{prefix}.screenshot.{'window' if isinstance(target, SurfaceTarget) else 'desktop'}"
    return f"{prefix}.{kind}"


def _runs(action: Action, kind: str, *, runs_commands: bool) -> bool:
    if isinstance(action, App) and action.op == "launch":
        return runs_commands or bool(action.arguments) or not action.name.endswith(".desktop")
    if isinstance(action, Open):
        return _RUNS_WHEN_OPENED.search(action.uri) is not None
    if isinstance(action, Press) and any(is_window_manager_chord(chord) for chord in action.chords):
        return True
    # A middle click pastes, in every terminal.
    return runs_commands and (kind in _TYPING or (isinstance(action, Click) and action.button == "middle"))


def is_window_manager_chord(chord: str) -> bool:
    """Say whether a window manager may take this chord, and run something for it. Rather too often than too rarely."""
    *modifiers, key = chord.casefold().split("+")
    held = set(modifiers)
    if held & _WM_MODIFIERS or key in _WM_MODIFIERS or key.startswith(("xf86", "launch")):
        return True
    if held & _ALT:
        return bool(held & _CONTROL) or _WM_WITH_ALT.fullmatch(key) is not None
    return False


def effective_risk(action: Action, declared: Risk, categories: AbstractSet[str]) -> Risk:
    """Return the risk to decide with: what was declared, raised to the action's least and to its categories."""
    kind = kind_of(action)
    if kind == "abort":
        # Letting go of everything is the one thing that must never wait for a yes, whatever it was declared to be.
        return "read"
    if "destructive" in categories:
        return "destructive"
    reads = kind in _READING or (isinstance(action, Clipboard) and action.op == "read")
    floor: Risk = "read" if reads else "reversible"
    if not categories.isdisjoint(_EXTERNAL):
        floor = "external"
    return declared if RISKS.index(declared) >= RISKS.index(floor) else floor


def proven_categories(
    action: Action, effect: str, declared: Risk, words: Words, own_ports: AbstractSet[int] = frozenset()
) -> frozenset[Proven]:
    """Return the categories that follow from the request itself; `own_ports` are those that a console page is on."""
    if kind_of(action) == "abort":
        return frozenset()
    found: set[str] = {OWN_SURFACE} if own.leads_to(action, own_ports) else set()
    if effect == PROCESS_RUN:
        found.add("process_run")
    if declared in ("external", "destructive"):
        found.add(declared)
    if secret_of(action) is not None:
        found.add("credentials")
    if type(action) in _TELLING:
        found |= _of_parameters(action, words)
    return proof.categories(found)


def _of_parameters(action: Action, words: Words) -> set[str]:
    """Return the categories that follow from what the agent itself names: a file, an address, an action, an option."""
    found: set[str] = {"upload"} if isinstance(action, Upload) else set()
    if isinstance(action, Open):
        found |= controls.of_address(action.uri)
    elif isinstance(action, _ADDRESSED) and action.url:
        found |= controls.of_address(action.url)
    if isinstance(action, Perform):
        found |= controls.of_label(words, action.name)
    if isinstance(action, SelectOption) and action.option is not None:
        found |= controls.of_label(words, action.option)
    return found


def observed_categories(action: Action, words: Words, control: Control) -> frozenset[str]:
    """Return the categories that the screen gives away: what the control, and what is around it, is called."""
    kind = kind_of(action)
    found: frozenset[str] = frozenset()
    if kind in _ENTERING:
        found = controls.of_entry(words, control)
    if isinstance(action, Press):
        found = controls.of_chords(action.chords, control.role)
    if kind in _ACTIVATING and not controls.is_written(control.role):
        found |= controls.of_activation(words, control, in_dialog=kind == "dialog")
    return found
