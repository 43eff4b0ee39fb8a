"""The built-in policy in one page, written apart from the product: what `core/policy/evaluate.py` is tested against.

It reads rule records as they are, matches by recursion, compiles nothing, and decides by one expression. Slow and plain
on purpose; when it and the product differ, one of them is wrong.
"""

from __future__ import annotations

import re
import unicodedata

ORDER = ["allow", "require_approval", "deny"]
CONSEQUENTIAL_AND_PLACES = {
    "credentials", "destructive", "external", "install", "process_run", "purchase", "send_publish", "settings",
    "upload", "denied_app", "own_surface", "sensitive_app", "shared_desktop",
}  # fmt: skip
INTERPRETERS = [
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "java",
    "lua",
    "luajit",
    "php",
    "bash",
    "dash",
    "sh",
    "zsh",
    "fish",
    "ksh",
    "tclsh",
    "wish",
    "guile",
    "mono",
    "dotnet",
    "env",
    "busybox",
    "wine",
    "electron",
    "gjs",
    "qml",
    "qmlscene",
    "Rscript",
    "julia",
    "sudo",
    "pkexec",
    "bwrap",
    "flatpak",
    "snap",
]


def glob(pattern, text):
    if "*" not in pattern:
        return pattern == text
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), text, re.DOTALL) is not None


def compared(text):
    normal = unicodedata.normalize("NFKC", text).casefold().replace("\u0131", "i").replace("\u0307", "")
    return "".join(c for c in normal if c != "_" and unicodedata.category(c) != "Cf")


def interpreter(app):
    name = app.removeprefix("exe:").rsplit("/", 1)[-1]
    return app.startswith("exe:") and any(re.fullmatch(re.escape(one) + r"[\d.-]*", name) for one in INTERPRETERS)


def holds(rule, document, action, present, observed):
    match, facts = rule.match, document.facts
    proven = {
        "principal": document.principal, "action": action, "app": facts.app, "place": facts.place,
        "risk": document.risk, "isolation": facts.isolation, "interaction_mode": document.interaction_mode,
        "trust_level": facts.trust_level, "backend": facts.backend, "secret": facts.secret or "",
    }  # fmt: skip
    grants = rule.effect == "allow" or bool(rule.covers)
    return (
        all(
            any(glob(pattern, value) for pattern in getattr(match, field))
            for field, value in proven.items()
            if getattr(match, field)
        )
        and (not match.category or bool(set(match.category) & present))
        and (
            match.observed is None
            or all(
                isinstance(observed.get(field), str)
                and any(
                    glob(compared(pattern), compared(observed[field][:1024]))
                    for pattern in getattr(match.observed, field)
                )
                for field in ("role", "name", "context", "title", "claimed")
                if getattr(match.observed, field)
            )
        )
        and not (grants and match.app and interpreter(facts.app))
    )


def answer(rules, defaults, document, observed):
    facts = document.facts
    proven = set(facts.categories) | ({"sensitive_app"} if facts.sensitive_app else set())
    proven |= {"shared_desktop"} if facts.isolation == "shared" else set()
    present = proven | set(observed.get("categories", ())) & CONSEQUENTIAL_AND_PLACES
    seen_as = observed.get("effect")

    def applies(rule):
        as_asked = holds(rule, document, document.action, present, observed)
        as_seen = seen_as is not None and rule.effect != "allow" and holds(rule, document, seen_as, present, observed)
        return as_asked or as_seen

    mine = [rule for rule in rules if applies(rule)]
    unseen = [rule for rule in rules if rule.effect != "deny" and holds(rule, document, document.action, proven, {})]
    covered = {name for rule in unseen for name in rule.covers}
    behind = [rule for rule in defaults if applies(rule)]
    behind = [rule for rule in behind if not rule.match.category or not set(rule.match.category) & present <= covered]
    effects = {rule.effect for rule in mine + behind}
    return (
        "deny" if "deny" in effects or not effects
        else "allow" if "require_approval" not in effects or document.approved
        else "require_approval"
    )  # fmt: skip


def decide(rules, defaults, document):
    blind = answer(rules, defaults, document, {})
    seen = answer(rules, defaults, document, document.facts.observed)
    return max(blind, seen, key=ORDER.index)
