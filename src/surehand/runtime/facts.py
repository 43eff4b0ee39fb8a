"""What policy is told about runs and reads: forms its documents with `core`, one scope per desktop and backend."""

from __future__ import annotations

from typing import Final

from surehand.core.hashing import Digest
from surehand.core.policy.categories import claims_console
from surehand.core.policy.inputs import Scope, policy_input, read_input, with_secret
from surehand.core.policy.vocabulary import Vocabulary
from surehand.core.risk.controls import is_silent, is_written
from surehand.core.risk.forms import fields_beside
from surehand.core.safety import Host
from surehand.core.scene.tree import index_of
from surehand.model.decision import PolicyInput
from surehand.model.scene import Surface
from surehand.runtime.resolve import Aim
from surehand.runtime.run import Run
from surehand.runtime.session import Session

_OBSERVE: Final = "desktop.observe"


class FactFinder:
    """Forms the policy documents of runs and reads."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        digest: Digest,
        denied_tokens: frozenset[str],
        own_pids: frozenset[int] = frozenset(),
    ) -> None:
        self._vocabulary = vocabulary
        self._digest = digest
        self._denied = denied_tokens
        self._own_pids = own_pids
        self._attended: frozenset[int] = frozenset()
        self._own_ports: frozenset[int] = frozenset()
        #: Processes with a window that claims to be the console page, while there is one.
        self._claiming: frozenset[int] = frozenset()
        self._scopes: dict[tuple[str, str, str], Scope] = {}

    @property
    def attended(self) -> frozenset[int]:
        """Processes of the people on the control socket, whose windows are Surehand's own meanwhile."""
        return self._attended

    def noted(self, surface: Surface) -> int:
        """Note a window that claims to show the console page; return how many processes did while one runs.

        From then on its whole process is out of reach: windows beside it may have no title, and show the same.
        """
        is_new = bool(self._own_ports) and surface.app.pid not in self._claiming
        if is_new and claims_console(surface.title, surface.app.claimed_name):
            self._claiming |= {surface.app.pid}
            self._scopes.clear()
        return len(self._claiming)

    @property
    def own_ports(self) -> frozenset[int]:
        """Ports that console pages are on."""
        return self._own_ports

    def attend(self, pids: frozenset[int], own_ports: frozenset[int]) -> None:
        """Take these processes and ports for Surehand's own from now on."""
        self._attended, self._own_ports, self._claiming = pids, own_ports, frozenset()
        self._scopes.clear()

    def document(self, run: Run) -> PolicyInput:
        """Return what policy is asked about a run that nobody has approved yet."""
        aim = run.aim
        backend = "desktop" if aim.surface is None else aim.surface.backend
        found = policy_input(
            self._scope(run.session, backend),
            run.request,
            principal=run.principal,
            surface=aim.surface,
            node=aim.node,
            context=aim.context,
            fields=self._fields(aim),
        )
        return found if aim.secret is None else with_secret(found, aim.secret, aim.node)

    def reading(self, session: Session, surface: Surface, effect: str = _OBSERVE) -> PolicyInput:
        """Return what policy is asked about reading a surface."""
        scope = self._scope(session, surface.backend)
        return read_input(scope, effect, principal=session.principal, surface=surface)

    def _fields(self, aim: Aim) -> tuple[str, ...]:
        """Return what the form around a button that says nothing itself asks for."""
        node = aim.node
        if node is None or aim.seen is None or aim.index is None:
            return ()
        if is_written(node.role) or not is_silent(self._vocabulary.words, node.name):
            return ()
        return fields_beside(index_of(aim.seen.tree), aim.index)

    def _scope(self, session: Session, backend: str) -> Scope:
        isolation = "shared" if session.desk is None else session.desk.isolation
        key = (isolation, session.trust_level, backend)
        scope = self._scopes.get(key)
        if scope is None:
            scope = Scope(
                host=Host(isolation=isolation, trust_level=session.trust_level),
                vocabulary=self._vocabulary,
                digest=self._digest,
                backend=backend,
                denied_tokens=self._denied,
                own_pids=self._own_pids | self._attended | self._claiming,
                own_ports=self._own_ports,
            )
            self._scopes[key] = scope
        return scope
