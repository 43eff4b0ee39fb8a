"""All wiring, and the only module that names adapters: from configuration and folders to a host that runs.

Promises that nothing is served before the journal was verified and what the last run left open was ended.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import pwd
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from surehand.adapters.atspi.acting import AtspiActor
from surehand.adapters.atspi.identity import identify
from surehand.adapters.atspi.observer import AtspiObserver
from surehand.adapters.atspi.touching import refuse_covered
from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.adapters.process import ProcessActor, application_of, missing
from surehand.adapters.secrets_vault import VaultFile
from surehand.adapters.x11.actor import X11Actor
from surehand.adapters.x11.bare import BareWindows
from surehand.adapters.x11.interruptions import X11Interruptions
from surehand.adapters.x11.screen import X11Screen
from surehand.adapters.x11.windows import locate
from surehand.core.approval import Approver
from surehand.core.approvers import Approvers
from surehand.core.authority import Keyring, PinnedKey
from surehand.core.hashing import text_digest
from surehand.core.input import stop_key
from surehand.core.policy.inputs import denied_tokens
from surehand.core.policy.to_cedar import cedar_schema
from surehand.errors import InvalidRequest, Unavailable
from surehand.model.events import NewEvent
from surehand.model.record import to_value
from surehand.model.scene import AppIdentity, LiveNode, Surface
from surehand.ports import Clock, Herald, PolicyEngine
from surehand.runtime import halting
from surehand.runtime._desktop_folder import PATH as PROGRAMS_PATH
from surehand.runtime.approvals import Approvals
from surehand.runtime.authority import Authority
from surehand.runtime.budgets import Budgets
from surehand.runtime.clock import SystemClock
from surehand.runtime.config import Config, PolicyChoice, check_operator_owned
from surehand.runtime.cropping import crop_of
from surehand.runtime.crops import CropFiles
from surehand.runtime.current import SHARED, SharedInput, current_desktop
from surehand.runtime.desks import Desks, launch_in
from surehand.runtime.desktops import DesktopRecord
from surehand.runtime.facts import FactFinder
from surehand.runtime.findings import Findings
from surehand.runtime.gateway import Gateway, Keys
from surehand.runtime.guard import Guard
from surehand.runtime.heralds import Heralds
from surehand.runtime.host import Host
from surehand.runtime.kept import KeptFiles
from surehand.runtime.operations import Operations
from surehand.runtime.parts import Parts
from surehand.runtime.people import People
from surehand.runtime.policies import Policies
from surehand.runtime.policy_source import Material, first_ruling, load_vocabulary
from surehand.runtime.reads import Reads
from surehand.runtime.recovery import recover
from surehand.runtime.resolve import Resolver
from surehand.runtime.reviews import Evaluator
from surehand.runtime.scenes import Scenes
from surehand.runtime.secrets import Secrets, take_from_environment
from surehand.runtime.session import Desk, Isolation
from surehand.runtime.watch import Watcher
from surehand.signing import ed25519, es256
from surehand.signing.keyring import load_keyring
from surehand.signing.keystore import KeyStore
from surehand.signing.private_files import private_directory
from surehand.verify.audit import audit

_log: Final = logging.getLogger("surehand.compose")
_DENIED_APPS: Final = "SUREHAND_DENIED_APPS"
_ISOLATIONS: Final[dict[str, Isolation]] = {"isolated": "isolated", "display_only": "display_only", SHARED: SHARED}
#: For those who open a desktop without an operator's configuration: benchmarks, tests.
_DEFAULTS: Final = Config()
JOURNAL_NAME: Final = "journal.sqlite"
KEYS_NAME: Final = "keys"
QUESTIONS_NAME: Final = "approvals"
CROPS_NAME: Final = "approval-pictures"
VAULT_NAME: Final = "secrets.vault"
VAULT_KEY_NAME: Final = "vault.key"


async def build_host(
    config: Config, *, state_dir: Path, denied_apps: str | None = None, policy_beside: Path | None = None
) -> Host:
    """Return a host that is ready to serve.

    Args:
        config: The operator's.
        state_dir: Where journal and keys are; made where missing, ours alone.
        denied_apps: Comma list of applications to deny; the environment's `SUREHAND_DENIED_APPS` by default.
        policy_beside: Where a policy may appear later, if the configuration names none.

    Raises:
        SurehandError: a policy, key or journal file that is not as it must be; says how to mend it.
    """
    clock = SystemClock()
    private_directory(state_dir)
    keys = KeyStore.open(state_dir / KEYS_NAME)
    journal = SqliteJournal.open(state_dir / JOURNAL_NAME, clock=clock)
    listed = os.environ.get(_DENIED_APPS, "") if denied_apps is None else denied_apps
    parts = _parts(config, clock, journal, keys, denied_tokens(",".join((*config.denied_apps, listed))), state_dir)
    parts.approvals.crops = CropFiles(state_dir / CROPS_NAME, keys.questions_key)
    parts.approvals.take_crop = lambda run: crop_of(parts, run)
    parts.approvals.leave.reviews.evaluator = _evaluator(config)
    if config.policy is None and parts.authority.policies is not None:
        parts.authority.policies.beside = policy_beside
    if journal.recovery is None:
        started = {"trust_level": config.trust_level, "authority": config.authority}
        await recover(journal, parts.operations)
        await parts.approvals.restore()
        await parts.people.restore()
        await halting.restore(parts)
        await parts.authority.budgets.restore()
        await journal.append(
            [
                NewEvent(stream="daemon", type="daemon.started.v1", actor="daemon", payload=started),
                NewEvent(
                    stream="daemon",
                    type="policy.loaded.v1",
                    actor="daemon",
                    payload={
                        "revision": parts.authority.policy.revision,
                        "closed": parts.authority.policy.closed or "",
                    },
                ),
            ]
        )
    host = Host(parts)
    heralds = Heralds(_heralds(config, keys), clock)
    heralds.start(parts.approvals.pending())
    host.listen(heralds.heard)
    parts.closers.append(heralds.close)
    return host


def _evaluator(config: Config) -> Evaluator | None:
    """Return the program that thinks about requests, where the operator named one."""
    if config.evaluator is None:
        return None
    from surehand.adapters.evaluator_program import EvaluatorProgram  # noqa: PLC0415 - only who uses it loads it

    program = Path(config.evaluator.command[0])
    if not os.access(program, os.X_OK):
        raise InvalidRequest(f"evaluator: {program} cannot be run", fix="correct evaluator.command, or leave it out")
    check_operator_owned(program)
    return EvaluatorProgram(config.evaluator.command)


def _heralds(config: Config, keys: KeyStore) -> list[Herald]:
    """Return who tells people outside of questions."""
    from surehand.adapters.notify_dbus import DesktopNotices, session_bus  # noqa: PLC0415 - only who uses it loads it

    found: list[Herald] = []
    address = session_bus(os.environ) if config.notify_desktop else None
    if address is not None:
        found.append(DesktopNotices(address))
    if config.webhook is not None:
        from surehand.adapters.webhook import Webhook  # noqa: PLC0415 - with TLS; only who uses it loads it

        found.append(Webhook(config.webhook, keys.notices_key, content=config.webhook_content))
    return found


def _parts(
    config: Config, clock: Clock, journal: SqliteJournal, keys: KeyStore, denied: frozenset[str], state_dir: Path
) -> Parts:
    digest = text_digest(keys.digest_key)
    facts = FactFinder(load_vocabulary(), digest, denied, frozenset({os.getpid()}))
    policies = _policies(config, clock, journal)
    authority = Authority(config, policies.ruling.policy, _keyring(config), ed25519.verify, clock)
    authority.policies = policies
    authority.read_document, authority.claims_noted = facts.reading, facts.noted
    authority.budgets = Budgets(clock, journal)
    operations = Operations(journal, clock)
    scenes = Scenes(clock, authority.check_read)
    approvers = _approvers(config, keys)
    webhook_key = None if config.webhook is None else keys.notices_key.public_key
    approvals = Approvals(
        journal,
        clock,
        approvers,
        ed25519.verify,
        life_ms=config.approval_minutes * 60_000,
        kept=KeptFiles(state_dir / QUESTIONS_NAME, keys.questions_key),
    )
    secrets = _secrets(config, clock, journal, state_dir)
    gateway = Gateway(
        clock=clock,
        keys=Keys(permit=keys.permit_key, salt=keys.salt_key, digest=keys.digest_key),
        operations=operations,
        authority=authority,
        facts=facts,
        approvals=approvals,
        resolver=Resolver(scenes, clock, secrets.bound),
        watcher=Watcher(scenes, clock, digest),
        secrets=secrets,
    )
    return Parts(
        config=config,
        clock=clock,
        journal=journal,
        operations=operations,
        authority=authority,
        approvals=approvals,
        people=People(journal, clock, digest, approvals.notices),
        findings=Findings(clock),
        facts=facts,
        scenes=scenes,
        reads=Reads(journal, digest),
        gateway=gateway,
        desks=Desks(
            lambda record: open_desk(record, clock, config),
            lambda: current_desktop(config.pairings, os.environ, Path(pwd.getpwuid(os.getuid()).pw_dir)),
        ),
        describe_keys=lambda: _describe_keys(config, approvers, webhook_key),
        describe_journal=journal.facts,
        verify_journal=lambda: _verify(journal),
        closers=[policies.close, secrets.close],
    )


def _secrets(config: Config, clock: Clock, journal: SqliteJournal, state_dir: Path) -> Secrets:
    """Return the enrolled secrets; those of the environment are out of it afterwards."""
    from surehand.adapters.notify_dbus import session_bus  # noqa: PLC0415 - only who uses it loads it
    from surehand.adapters.secrets_keyring import Keyring  # noqa: PLC0415

    address = session_bus(os.environ)
    return Secrets(
        VaultFile(state_dir / VAULT_NAME, state_dir / KEYS_NAME / VAULT_KEY_NAME),
        None if address is None else Keyring(address),
        take_from_environment(config.env_secrets, os.environ),
        journal,
        clock,
        lambda pid: identify(pid, "").key,
    )


def _policies(config: Config, clock: Clock, journal: SqliteJournal) -> Policies:
    tried = None if config.tried is None else first_ruling(config.tried, open_engine)
    return Policies(first_ruling(config.enforced, open_engine), open_engine, clock, journal, tried=tried)


def open_engine(choice: PolicyChoice, material: Material) -> PolicyEngine:
    """Return the policy engine that an operator chose. Each is loaded by those who chose it alone.

    Raises:
        InvalidRequest, Unavailable: what is wrong with the policy, or with the installation.
    """
    if choice.engine == "opa":
        from surehand.adapters.policy_opa import open_opa  # noqa: PLC0415 - see above

        return open_opa(
            url=choice.url,
            unix_socket=choice.unix_socket,
            path=choice.decision,
            timeout_ms=choice.timeout_ms,
            ca=choice.ca,
            cert=choice.cert,
            key=choice.key,
        )
    if choice.engine == "cedar":
        from surehand.adapters.policy_cedar import open_cedar  # noqa: PLC0415 - see above

        return open_cedar("\n".join(material.modules.values()), schema=cedar_schema(), revision=material.revision)
    from surehand.adapters.policy_rego import open_rego  # noqa: PLC0415 - see above

    return open_rego(material.modules, material.data, entrypoint=choice.decision, revision=material.revision)


def _keyring(config: Config) -> Keyring:
    if config.keyring is None:
        if config.authority == "host":
            raise InvalidRequest(
                "authority is host and no keyring is named", fix="set keyring to the file with the host's public keys"
            )
        return Keyring(())
    check_operator_owned(Path(config.keyring))
    return Keyring(
        PinnedKey(
            issuer=key.issuer,
            key_id=key.key_id,
            public_key=key.public_key,
            policy_generation=key.policy_generation,
        )
        for key in load_keyring(Path(config.keyring))
    )


def _approvers(config: Config, keys: KeyStore) -> Approvers:
    """Return who may answer: those the operator named, else whoever has a key file here now (level A).

    A key whose file goes away counts no more, at once; one that comes counts after the next start.
    """
    if config.approvers:
        return Approvers(config.approvers, trust_level=config.trust_level, es256=es256.verify)
    known = [
        Approver(
            approver=key.approver,
            key_id=key.key_id,
            public_key=key.public_key,
            passphrase=keys.behind_passphrase(key.approver),
        )
        for key in keys.approvers()
    ]
    return Approvers(
        known,
        trust_level=config.trust_level,
        revoked=lambda one: not keys.holds(one.approver, one.key_id),
        es256=es256.verify,
    )


def _describe_keys(config: Config, approvers: Approvers, webhook_key: str | None) -> dict[str, Any]:
    return {
        "authority": config.authority,
        "trust_level": config.trust_level,
        **({"held_back": list(config.held_back)} if config.held_back else {}),
        **({} if webhook_key is None else {"webhook_public_key": webhook_key}),
        "approvers": [
            {
                "approver": one.approver,
                "key_id": one.key_id,
                "public_key": one.public_key,
                "passphrase": one.passphrase,
            }
            for one in approvers.allowed()
        ],
        "credentials": [to_value(one) for one in approvers.credentials()],
    }


async def _verify(journal: SqliteJournal) -> dict[str, Any]:
    """Have the auditor look at a closed copy; it shares no code with the writer."""
    with tempfile.TemporaryDirectory(prefix="surehand-audit-") as folder:
        copy = Path(folder) / JOURNAL_NAME
        await journal.copy_to(copy)
        verdict = await asyncio.to_thread(audit, copy)
    return dict(verdict.to_value())


# --- desks --------------------------------------------------------------------------------------------------------


async def open_desk(record: DesktopRecord, clock: Clock, config: Config = _DEFAULTS) -> Desk:
    """Attach to a desktop: its screen, its accessibility bus and, where no person uses it, its pointer and keyboard."""
    screen = X11Screen(record.display, record.xauthority, clock)
    await screen.open()

    def origin(pid: int, title: str, size: tuple[int, int]) -> tuple[int, ...] | None:
        place = locate(screen.snapshot, pid, title, size)
        return None if place is None else (place.x, place.y, place.width, place.height)

    def is_modal(pid: int, title: str, size: tuple[int, int]) -> bool:
        place = locate(screen.snapshot, pid, title, size)
        return place is not None and place.modal

    observer = AtspiObserver(
        record.a11y_bus_address,
        desktop=record.name,
        window_origin=origin,
        window_is_modal=is_modal,
        look_around=screen.refresh,
        native_windows=lambda: [(one.pid, one.title) for one in screen.snapshot.windows if one.pid is not None],
    )
    await observer.start()
    bare = BareWindows(screen, desktop=record.name, clock=clock, described=observer.pids, identify=identify)
    _keep_current(screen, bare.note)

    async def live(surface_id: str, handles: Sequence[str]) -> Mapping[str, LiveNode | None]:
        return await (bare if bare.knows(surface_id) else observer).live(surface_id, handles)

    interruptions = X11Interruptions(record.display, record.xauthority, stop_key.parse_stop_key(config.stop_key))
    await interruptions.open()
    desk = Desk(
        name=record.name,
        isolation=_ISOLATIONS[record.isolation],
        root=root_surface(record.name),
        observers=(observer, bare),
        actors=(AtspiActor(observer, may_open_lists=False), SharedInput()),
        screen=screen,
        interruptions=interruptions,
        on_stop=interruptions.on_stop,
        closers=[screen.close, observer.close, bare.close, interruptions.close],
    )
    if desk.isolation == SHARED:
        await _mark(desk, record, config)
        return desk
    guard = Guard(record.display, record.xauthority)
    await guard.start()
    uncovered = functools.partial(refuse_covered, observer)
    pointer = X11Actor(screen, guard.note, live_reader=live, interruptions=interruptions, uncovered=uncovered)
    await pointer.open()

    async def launch(argv: Sequence[str]) -> int:
        return await launch_in(record, argv)

    desk.actors = (AtspiActor(observer), pointer, ProcessActor(launch))
    desk.application_of = application_of
    desk.missing = functools.partial(missing, path=PROGRAMS_PATH)
    desk.closers += [guard.close, pointer.close]
    return desk


async def _mark(desk: Desk, record: DesktopRecord, config: Config) -> None:
    """Show the person when an agent acts, unless the operator does not want it."""
    if not config.marker:
        return
    from surehand.adapters.x11.marker import X11Marker  # noqa: PLC0415 - only a person's desktop needs it

    marker = X11Marker(record.display, record.xauthority, "" if config.stop_key == stop_key.OFF else config.stop_key)
    try:
        await marker.open()
    except Unavailable as error:
        _log.warning("agents act on %s without a badge: %s", record.display, error.message)
        await marker.close()
        return
    desk.marker = marker
    desk.closers.append(marker.close)


def _keep_current(screen: X11Screen, then: Callable[[], None]) -> None:
    """Read the windows again whenever they change: GTK 4 elements stand where the window was when it was last read."""
    running: set[asyncio.Task[Any]] = set()

    def done(task: asyncio.Task[Any]) -> None:
        running.discard(task)
        if not task.cancelled():
            task.exception()  # the display is gone; whoever reads from it is told so
            then()

    def look_again() -> None:
        task = asyncio.get_running_loop().create_task(screen.refresh())
        running.add(task)
        task.add_done_callback(done)

    screen.on_change(look_again)


def root_surface(name: str) -> Surface:
    """Return the surface that stands for a desktop as a whole."""
    identity = AppIdentity(key="", pid=0, process_generation=name, uid=os.getuid(), executable="")
    return Surface(
        surface_id=f"desktop-{name}"[:256],
        desktop=name,
        app=identity,
        backend="desktop",
        toolkit="",
        title="",
        role="desktop",
        place="",
    )
