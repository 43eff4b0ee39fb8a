# Decides by rules that are data, as the built-in engine does: see docs/reference/policy.md.
#
# `surehand policy translate --to rego` writes `data.surehand`: rules by number, and which of them can speak of an
# application, a place, a principal or an action, so that a request is compared with few of them. Question and answer
# are those of spec/policy.md. Nothing here is needed by a policy of your own: it only has to define
# `data.surehand.decision`.
package surehand

import rego.v1

default decision := {"outcome": "default"}

decision := answer("deny", denying[0], []) if count(denying) > 0

else := answer("require_approval", asking[0], letting) if count(asking) > 0

else := answer("allow", letting[0], letting) if count(letting) > 0

answer(outcome, rule, standing) := {
	"outcome": outcome,
	"rule": rule.id,
	"reason": rule.reason,
	"covers": sort({name | some one in standing; some name in one.covers}),
	"obligations": {
		"redact": sort({name | some one in standing; some name in one.redact}),
		# "ask" comes after "always", and is the stricter one.
		"release": max({one.release | some one in standing} | {"always"}),
		"approvals_needed": max({one.approvals | some one in standing} | {1}),
	},
}

applying := [rule | some number in sort(candidates); rule := data.surehand.rules[number]; applies(rule)]

denying := [rule | some rule in applying; rule.effect == "deny"]

asking := [rule | some rule in applying; rule.effect == "require_approval"]

letting := [rule | some rule in applying; rule.effect != "deny"]

# --- which rules can speak of this ---------------------------------------------------------------------------------

candidates contains number if some number in data.surehand.index.any

candidates contains number if {
	some one in looked_up
	some number in data.surehand.index[one.by].equals[one.text]
}

candidates contains number if {
	some one in looked_up
	some start, numbers in data.surehand.index[one.by].starts
	startswith(one.text, start)
	some number in numbers
}

candidates contains number if {
	some one in looked_up
	some end, numbers in data.surehand.index[one.by].ends
	endswith(one.text, end)
	some number in numbers
}

looked_up contains {"by": "app", "text": input.facts.app}

looked_up contains {"by": "place", "text": input.facts.place}

looked_up contains {"by": "principal", "text": input.principal}

looked_up contains {"by": "action", "text": input.action}

looked_up contains {"by": "action", "text": input.facts.observed.effect}

# --- whether a rule applies ----------------------------------------------------------------------------------------

applies(rule) if {
	every field, test in rule.proven {
		matches(test, values[field])
	}
	action_holds(rule)
	category_holds(rule)
	every field, test in rule.observed {
		matches(test, input.facts.observed.plain[field])
	}
	not passed_over(rule)
}

values := {
	"principal": input.principal,
	"risk": input.risk,
	"isolation": input.facts.isolation,
	"app": input.facts.app,
	"place": input.facts.place,
	"interaction_mode": input.interaction_mode,
	"trust_level": input.facts.trust_level,
	"backend": input.facts.backend,
	"secret": input.facts.secret,
}

action_holds(rule) if not rule.action

action_holds(rule) if matches(rule.action, input.action)

# What the screen says it really is may be denied or asked about as well; it may not be allowed as that.
action_holds(rule) if {
	rule.effect != "allow"
	matches(rule.action, input.facts.observed.effect)
}

category_holds(rule) if not rule.category

category_holds(rule) if {
	some name in rule.category
	name in present
}

present contains name if some name in input.facts.categories

present contains name if some name in input.facts.observed.categories

# An interpreter stands for every program it could run, so its identity opens nothing.
passed_over(rule) if {
	rule.by_app
	input.facts.interpreter
}

# --- patterns ------------------------------------------------------------------------------------------------------

matches(test, text) if test.equals[text]

matches(test, text) if {
	some part in test.globs
	glob_matches(part, text)
}

glob_matches(part, text) if {
	startswith(text, part.first)
	endswith(text, part.last)
	between := (count(text) - count(part.first)) - count(part.last)
	between >= 0
	middle_matches(part.middle, substring(text, count(part.first), between))
}

middle_matches(parts, _) if count(parts) == 0

middle_matches(parts, text) if {
	count(parts) > 0
	t1 := after(text, parts[0])
	t2 := after(t1, parts[1])
	t3 := after(t2, parts[2])
	t4 := after(t3, parts[3])
	t5 := after(t4, parts[4])
	t6 := after(t5, parts[5])
	after(t6, parts[6]) != null
}

# Middle parts are filled up with empty ones, which match where they stand.
after(text, part) := text if part == ""

after(text, part) := substring(text, at + count(part), -1) if {
	part != ""
	at := indexof(text, part)
	at >= 0
}
