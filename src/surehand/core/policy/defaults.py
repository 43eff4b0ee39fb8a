"""The rules that hold when an operator wrote none (spec §6.2), as data.

They stand behind the operator's rules. A default that names categories gives way where an operator rule that matches
covers every one of those that are present; nothing else makes it give way, and the first two never do.
"""

from __future__ import annotations

from typing import Final

from surehand.core.policy.model import CONSEQUENTIAL, Match, Rule

#: Raised whenever the rules below change their meaning; part of every policy revision.
DEFAULTS_VERSION: Final = 1

DEFAULT_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="default.own-surfaces",
        effect="deny",
        reason="Surehand's own console, windows and the terminals that run it are out of an agent's reach.",
        match=Match(category=("own_surface",)),
    ),
    Rule(
        id="default.denied-apps",
        effect="deny",
        reason="The operator denied this application by name.",
        match=Match(category=("denied_app",)),
    ),
    Rule(
        id="default.sensitive-apps",
        effect="deny",
        reason="Password managers, key stores and authentication dialogs are neither read nor operated.",
        match=Match(category=("sensitive_app",)),
    ),
    Rule(
        id="default.consequential",
        effect="require_approval",
        reason="What has consequences beyond this desktop, or cannot be undone, needs a person's yes.",
        match=Match(category=tuple(sorted(CONSEQUENTIAL))),
    ),
    Rule(
        id="default.shared-mutation",
        effect="require_approval",
        reason="A person uses this desktop: each change needs approval or a standing grant.",
        match=Match(category=("shared_desktop",), risk=("reversible", "external", "destructive")),
    ),
    Rule(
        id="default.shared-sensitive-reads",
        effect="require_approval",
        reason="The clipboard and the whole screen of a shared desktop may show anything.",
        match=Match(
            category=("shared_desktop",),
            action=("desktop.clipboard.read", "desktop.screenshot.desktop", "desktop.physical_state"),
        ),
    ),
    Rule(
        id="default.letting-go",
        effect="allow",
        reason="Letting go of everything that is held is always right.",
        match=Match(action=("desktop.abort",)),
    ),
    Rule(
        id="default.reads",
        effect="allow",
        reason="Reading what is not sensitive is allowed.",
        match=Match(risk=("read",)),
    ),
    Rule(
        id="default.isolated",
        effect="allow",
        reason="Reversible actions on a desktop of the agent's own are allowed.",
        match=Match(isolation=("isolated", "display_only"), risk=("reversible",)),
    ),
)
