"""Who may ask, and what policy says: keyring, ceilings, budgets and the policy of this run of the daemon.

Holds the operator's configuration and counts; the rules are `core/authority` and `core/policy`. A policy that cannot
be read denies everything and says why (spec §6.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from surehand import limits
from surehand.core import authority as rules
from surehand.core.lifecycle import Gate
from surehand.core.policy.categories import effective_risk
from surehand.core.policy.evaluate import Policy, decide
from surehand.core.policy.inputs import all_categories
from surehand.core.policy.model import Risk
from surehand.errors import AuthorityDenied, PolicyDenied
from surehand.model.decision import Decision, PolicyInput
from surehand.model.scene import Surface
from surehand.ports import Clock
from surehand.runtime.budgets import Budgets
from surehand.runtime.config import Config
from surehand.runtime.current import check_not_the_persons
from surehand.runtime.launched import check_there
from surehand.runtime.policies import Policies
from surehand.runtime.run import Run
from surehand.runtime.session import ReadDecision, Session

#: All that agents are told of a policy that cannot be used.
_UNUSABLE: Final = "the policy cannot be used, so everything is denied"


class Authority:
    """Answers for one configuration and one policy."""

    def __init__(
        self, config: Config, policy: Policy, keyring: rules.Keyring, verify: rules.Verify, clock: Clock
    ) -> None:
        self._config = config
        self._policy = policy
        self._keyring = keyring
        self._verify = verify
        self._clock = clock
        self.budgets = Budgets(clock)
        self._ceilings: dict[str, rules.Ceiling | None] = {}
        #: Set by `compose`: the policy that is read again when it changes. Without it the given one decides for ever.
        self.policies: Policies | None = None
        #: Set by `compose`: forms the policy document of a read.
        self.read_document: Callable[[Session, Surface], PolicyInput] | None = None
        #: Set beside it: notes what a window claims; another number is another answer.
        self.claims_noted: Callable[[Surface], int] = lambda _surface: 0

    @property
    def policy(self) -> Policy:
        """The rules in force, or the defaults behind the engine in force."""
        return self._policy if self.policies is None else self.policies.ruling.policy

    @property
    def policy_generation(self) -> int:
        """How often the policy was another one, from 1."""
        return 1 if self.policies is None else self.policies.generation

    def authorise(self, run: Run) -> int:
        """Check the grant or the ceiling; return how many milliseconds the operation may take at most.

        Raises:
            AuthorityDenied: also while the desktop is handed over to a person.
            UnsupportedAction: it needs what a person has in hand; nobody is asked for an approval that changes nothing.
            AppNotFound: it would launch what is not there.
            BudgetExhausted: the principal is paused, and nobody is worn out for what would be refused at the claim.
        """
        run.session.check_not_handed_over()
        check_not_the_persons(run.session, run.request.action)
        request, wall = run.request, self._clock.wall_ms()
        ceiling, risk = self._ceiling(run.principal), _raised_risk(run)
        if self._config.authority == "host":
            granted = rules.check_grant(
                request.authority,
                self._keyring,
                self._verify,
                principal=run.principal,
                operation_id=run.operation_id,
                action_hash=run.action_hash,
                risk=request.risk,
                now_ms=wall,
            )
        else:
            granted = rules.check_ceiling(
                ceiling,
                effect=run.effect,
                app=run.aim.app,
                place=run.aim.place,
                risk=risk,
            )
        self.budgets.check(run, ceiling, risk)
        # Last: whoever may launch nothing learns nothing of what is installed.
        check_there(run.session, request.action)
        return rules.capped_deadline_ms(request.deadline_ms, granted, wall)

    def _ceiling(self, principal: str) -> rules.Ceiling | None:
        """Return the principal's ceiling; the configuration does not change while the daemon runs."""
        if principal not in self._ceilings:
            if len(self._ceilings) >= limits.CONNECTIONS_MAX:
                self._ceilings.clear()
            self._ceilings[principal] = rules.ceiling_of(self._config.ceilings, principal)
        return self._ceilings[principal]

    async def spend(self, run: Run) -> None:
        """Count the operation against its principal's budget.

        Raises:
            BudgetExhausted: nothing is counted.
        """
        ceiling = self._ceiling(run.principal)
        if ceiling is None:
            if self._config.authority == "host":
                return
            raise AuthorityDenied("the operator configured no authority for this principal", gate="authority")
        if rules.has_budget(ceiling):
            self.budgets.spend(run, ceiling, _raised_risk(run))
            await self.budgets.open(run)

    async def decide(self, document: PolicyInput, decision_id: str) -> Decision:
        """Ask policy, with and without what was observed."""
        if self.policies is None:
            decision = decide(self._policy, document, decision_id)
        else:
            decision = await self.policies.decide(document, decision_id)
        # Where the fault is, is the operator's to know: the log, doctor and `surehand policy check` tell.
        is_closed = self.policy.closed is not None and decision.rule == "closed"
        return msgspec.structs.replace(decision, reason=_UNUSABLE) if is_closed else decision

    def is_old(self, decision: Decision | None) -> bool:
        """Say whether the policy in force is another one than the one that decided; looks at its files where due."""
        if self.policies is None or decision is None:
            return False
        self.policies.look()
        return decision.policy_revision != self.policy.revision

    def check_current(self, decision: Decision) -> None:
        """Refuse what an earlier policy decided; at once, without a look at files.

        Raises:
            PolicyDenied: present it again, the policy in force decides.
        """
        if self.policies is not None and decision.policy_revision != self.policy.revision:
            raise _changed_meanwhile(decision)

    def check_usable(self) -> None:
        """Refuse where the operator's policy cannot be used: a list of nothing would say that nothing runs.

        Raises:
            PolicyDenied: everything is denied. Where the fault is, is the operator's to know.
        """
        if self.policies is not None:
            self.policies.look()
        if self.policy.closed is not None:
            raise PolicyDenied(
                _UNUSABLE,
                gate="policy",
                fix="ask the operator, to whom `surehand policy check` names the place",
                details={"rule": "closed"},
            )

    async def check_read(self, session: Session, surface: Surface) -> tuple[str, ...]:
        """Refuse to read a surface that policy closes to this session; return what is redacted in it. It is kept.

        Raises:
            PolicyDenied: naming the rule.
        """
        self.check_usable()
        generation = "1" if self.policies is None else self.policies.read_generation
        # The process too: of two of one program, one may show what is out of reach.
        process = f"{surface.app.pid}/{self.claims_noted(surface)}"
        key = (surface.app.key, surface.place, surface.app.claimed_name, surface.title, generation, process)
        kept = session.read_decisions.get(key)
        if kept is None:
            if self.read_document is None:
                raise PolicyDenied("no policy is wired", gate="policy")
            decision = await self.decide(self.read_document(session, surface), "read")
            # Nobody is there to be asked about a read's output, so what needs a yes is not given out.
            given = decision.outcome == "allow" and decision.obligations.release == "always"
            kept = ReadDecision("" if given else decision.rule, decision.obligations.redact)
            if decision.rule.startswith("engine."):
                # An engine that failed may answer the next time; nothing is remembered of it.
                raise PolicyDenied(
                    decision.reason, gate="policy", fix="ask the operator", details={"rule": decision.rule}
                )
            if len(session.read_decisions) >= limits.READ_DECISIONS_MAX:
                session.read_decisions.clear()
            session.read_decisions[key] = kept
        if kept.rule:
            raise PolicyDenied(
                "policy closes this application to reading",
                gate="policy",
                fix="ask the operator",
                details={"rule": kept.rule},
            )
        return kept.redact


def check_allowed(decision: Decision) -> None:
    """Refuse what policy does not allow.

    Raises:
        PolicyDenied: naming the rule.
    """
    if decision.outcome != "allow":
        raise PolicyDenied(
            decision.reason,
            gate=Gate.POLICY,
            fix="ask the operator, who wrote the rule or can write another one",
            details={"rule": decision.rule, "revision": decision.policy_revision},
        )


def check_again(decision: Decision) -> Decision:
    """Return what a policy that came in between decided, where that is a yes.

    Raises:
        PolicyDenied: it is a no, or a question that this attempt is past asking.
    """
    if decision.outcome == "require_approval":
        raise _changed_meanwhile(decision)
    check_allowed(decision)
    return decision


def _changed_meanwhile(decision: Decision) -> PolicyDenied:
    return PolicyDenied(
        "the policy became another one while this was under way",
        gate=Gate.POLICY,
        fix="present it again: the policy in force decides",
        details={"what": "policy_changed", "rule": decision.rule, "revision": decision.policy_revision},
    )


def _raised_risk(run: Run) -> Risk:
    """Return the highest risk that anything speaks for: what an agent declares must not lower a ceiling or a budget.

    The screen counts too, for it may only raise: a button called "Delete" is as destructive as the operator's cap says.
    """
    document = run.document
    if document is None:
        return run.request.risk
    return effective_risk(run.request.action, document.risk, all_categories(document))
