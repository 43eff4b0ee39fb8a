"""Every method by name, and which socket knows it (spec §11).

A method that is not in a socket's table does not exist there: approval and policy methods are unknown on the agent
socket, and acting methods are unknown on the control socket. `READS` may be asked again after a lost connection;
nothing else ever is (spec §11).
"""

from __future__ import annotations

from typing import Final, Literal

Role = Literal["agent", "control"]

#: Reads of an agent: no effect, so a client may ask once more after a reconnect.
READS: Final = frozenset(
    {
        "capabilities",
        "apps",
        "surfaces",
        "observe",
        "query",
        "refs",
        "at",
        "changes",
        "propose",
        "read_text",
        "find_text",
        "read_table",
        "screenshot",
        "wait",
        "status",
        "approval",
        "watch",
        "doctor",
    }
)

#: What can have an effect on the desktop; sent once per presentation, found again by operation id.
EFFECTS: Final = frozenset({"act", "batch"})

AGENT_METHODS: Final = READS | EFFECTS | {"approval.assert", "approval.form", "cancel", "end_session", "human", "plan"}

#: What an operator may ask again safely.
CONTROL_READS: Final = frozenset(
    {
        "approvals",
        "budgets",
        "ps",
        "policy",
        "policy.reload",
        "policy.rules",
        "policy.ask",
        "operations",
        "operation",
        "audit.head",
        "mode",
        "health",
        "audit.verify",
        "audit.show",
        "audit.report",
        "keys",
        "desktop.list",
        "standing.list",
        "requests",
        "secrets",
        "secrets.test",
        "holds",
        "watch.now",
        "watch.frame",
        "console",
        "approvals.show",
        "approvals.ended",
        "approvals.picture",
    }
)

CONTROL_METHODS: Final = CONTROL_READS | {
    "answer",
    "resolve",
    "mode.set",
    "standing.grant",
    "standing.revoke",
    "credentials.invite",
    "credentials.begin",
    "credentials.enrol",
    "credentials.remove",
    "secrets.init",
    "secrets.unlock",
    "secrets.lock",
    "secrets.set",
    "secrets.remove",
    "requests.take",
    "requests.done",
    "requests.decline",
    "stop",
    "halt",
    "pause",
    "resume",
    "take",
    "hand_back",
    "budgets.renew",
    "desktop.start",
    "desktop.stop",
    "desktop.launch",
    "events.subscribe",
}

METHODS: Final[dict[str, frozenset[str]]] = {"agent": AGENT_METHODS, "control": CONTROL_METHODS}
