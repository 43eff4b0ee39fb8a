"""What Surehand promises (docs/threat-model.md), as data: each claim, the tests that hold it, and the guard they watch.

`guard` is a line of the source and what it would read without its protection. `tests/tidy/test_claims.py` checks that
every test exists and every guard stands where it is said to; the long run removes each guard in a copy of the source
and sees the tests fail.
"""

from __future__ import annotations

from dataclasses import dataclass

PROMISES = {
    1: "No authority, no effect",
    2: "The right thing or nothing",
    3: "At most once",
    4: "Honest outcome",
    5: "The person wins",
    6: "The screen is data",
    7: "Nothing leaks",
    8: "Evidence survives",
}


@dataclass(frozen=True)
class Guard:
    """A place in the source, by text that occurs once in it, and that text without its protection."""

    path: str
    text: str
    without: str


@dataclass(frozen=True)
class Claim:
    """One claim of one promise."""

    promise: int
    says: str
    tests: tuple[str, ...]
    guard: Guard


_GATEWAY = "tests/unit/runtime/test_gateway.py::"
_PEOPLE = "tests/unit/runtime/test_attacks_people.py::"
_ASKED = "tests/unit/runtime/test_people.py::"
_HALTING = "tests/unit/runtime/test_halting.py::"
_APPROVALS = "tests/unit/runtime/test_approvals.py::"
_WEBAUTHN = "tests/unit/core/test_webauthn.py::"
_CREDENTIALS = "tests/unit/runtime/test_credentials.py::"
_LEVEL_B = "tests/unit/test_level_b.py::"
_SELF = "tests/desktop/mcp/test_self_approval.py::"
_HERALDS = "tests/unit/runtime/test_heralds.py::"
_ASSERTED = "tests/unit/runtime/test_asserted.py::"
_MODES = "tests/unit/runtime/test_modes.py::"
_EVALUATOR = "tests/unit/runtime/test_evaluator.py::"
_RACES = "tests/unit/policy/test_policy_races.py::"
_SECRETS = "tests/unit/runtime/test_secrets.py::"
_ANSWERING = "tests/unit/cli/test_watching.py::"
_ONCE = "tests/unit/runtime/test_attacks_once.py::"
_REACH = "tests/unit/runtime/test_attacks_reach.py::"
_HTTP = "tests/unit/mcp/test_http.py::"
_CONTENTS = "tests/unit/runtime/test_contents.py::"
_COVERING = "tests/unit/runtime/test_covering.py::"
_SHOTS = "tests/unit/runtime/test_shots.py::"
_PERMIT = "tests/unit/core/test_permit.py::"
_WITHHELD = "tests/unit/runtime/test_withheld.py::"
_CROPS = "tests/unit/runtime/test_crops.py::"
_OBEYED = "tests/unit/risk/test_injections.py::"
_ACTING = "tests/unit/atspi/test_acting_outcome.py::"
_INSTALLED = "tests/unit/test_installed_applications.py::"
_CURRENT = "tests/desktop/test_current.py::"
_POLICIES = "tests/unit/policy/test_policies.py::"
_ANSWERS = "tests/unit/policy/test_engine_answers.py::"
_IN_PROCESS = "tests/unit/policy/test_rego_and_cedar.py::"
_OPA = "tests/unit/policy/test_opa.py::"
_DOOR = "tests/unit/console/test_door.py::"
_PAGE_KEYS = "tests/unit/console/test_credentials.py::"
_ANSWERED = "tests/browser/test_approvals.py::"
_AWAY = "tests/unit/runtime/test_console_away.py::"
_AWAY_THERE = "tests/desktop/mcp/test_console_away.py::"
_CONSOLE = "src/surehand/console/"
_MCP = "src/surehand/mcp/"
_CORE = "src/surehand/core/"
_RUNTIME = "src/surehand/runtime/"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        6,
        "letters that are hidden, decorated, spaced or taken from another script are read as people read them",
        ("tests/unit/risk/test_text.py::test_delete_is_found_however_it_is_written",),
        Guard(_CORE + "risk/words.py", "            yield self._loose, words\n", ""),
    ),
    Claim(
        6,
        "a button that says nothing is what is written around it and what its form asks for",
        ("tests/unit/risk/test_controls.py::test_a_button_that_says_nothing_is_what_is_around_it",),
        Guard(_CORE + "risk/controls.py", "    if silent or in_dialog:\n", "    if in_dialog:\n"),
    ),
    Claim(
        6,
        "no file name makes the overwriting of a file harmless",
        ("tests/unit/risk/test_controls.py::TestReplacing::test_a_hostile_file_name_cannot_make_it_harmless",),
        Guard(_CORE + "risk/controls.py", "        if {OVERWRITING, EXISTING} <= around:\n", "        if False:\n"),
    ),
    Claim(
        6,
        "no character of a screen breaks or hides a line in a terminal",
        ("tests/unit/risk/test_injections.py::test_no_string_makes_a_line_or_a_code_on_a_terminal",),
        Guard(
            "src/surehand/client/display.py",
            'category[0] == "C" or category in _BREAKS or character in _BLANK',
            'category[0] == "C"',
        ),
    ),
    Claim(
        6,
        "an agent that obeys every text it reads does nothing that policy would have asked about",
        (_OBEYED + "test_an_agent_that_obeys_every_string_has_no_effect_that_policy_would_not_have_allowed",),
        Guard(
            _CORE + "policy/defaults.py",
            'id="default.consequential",\n        effect="require_approval",',
            'id="default.consequential",\n        effect="allow",',
        ),
    ),
    Claim(
        6,
        "nothing of a screen is among the facts that count as proven",
        ("tests/unit/risk/test_injections.py::test_no_string_anywhere_on_a_screen_makes_an_answer_more_lenient",),
        Guard(_CORE + "policy/proof.py", "    return Proven(surface.place)\n", "    return Proven(surface.title)\n"),
    ),
    Claim(
        1,
        "a policy that remembers an answer gives it to no question of which any fact that counts is another",
        ("tests/properties/test_policy_properties.py::test_no_question_is_given_the_answer_to_another",),
        Guard(
            _CORE + "policy/evaluate.py",
            "(_values(document, document.action), proven, present, seen_as, document.approved)",
            "(_values(document, document.action), proven, proven, seen_as, document.approved)",
        ),
    ),
    Claim(
        1,
        "facts that claim another isolation or trust level than the host states stop the operation",
        ("tests/unit/core/test_safety.py::test_facts_that_say_otherwise_stop_the_operation_whatever_policy_says",),
        Guard(
            _CORE + "safety.py",
            "    if facts.isolation != isolation or facts.trust_level != trust_level:\n",
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "an unfenced action is refused whatever policy says",
        ("tests/unit/core/test_safety.py::test_an_unfenced_action_is_refused",),
        Guard(_CORE + "safety.py", "    if target_kind not in TARGET_KINDS.get(kind, ()):\n", "    if False:\n"),
    ),
    Claim(
        1,
        "an action that no table lists is refused",
        ("tests/unit/core/test_safety.py::test_an_unknown_action_is_refused",),
        Guard(_CORE + "safety.py", "    if kind_of(action) not in TARGET_KINDS:\n", "    if False:\n"),
    ),
    Claim(
        7,
        "a secret goes into fields that are marked secret, whatever policy says",
        (
            "tests/unit/core/test_safety.py::test_a_secret_goes_into_secret_fields_only",
            "tests/unit/core/test_safety.py::test_no_rule_opens_what_the_kernel_refuses",
            _SECRETS + "test_a_field_that_shows_its_text_gets_a_secret_only_where_it_is_bound_to_that_very_field",
        ),
        Guard(
            _RUNTIME + "resolve.py",
            "        check_secret_use(request.action, aim.node, () if aim.secret is None else aim.secret.bound_to.fields)\n",
            "",
        ),
    ),
    Claim(
        2,
        "a query alone never picks the target of something consequential, whatever policy says",
        ("tests/unit/core/test_safety.py::TestQueries::test_a_query_is_never_enough_for_something_consequential",),
        Guard(
            _CORE + "safety.py",
            '    if decision.outcome != "allow" or document.approved or not isinstance(target, QueryTarget):\n',
            "    if True:\n",
        ),
    ),
    Claim(
        1,
        "a paused agent stays paused over a restart",
        ("tests/unit/runtime/test_budgets.py::test_a_restart_is_no_new_budget",),
        Guard(
            _RUNTIME + "budgets.py",
            "        for principal, started in began.items():\n",
            "        for principal, started in ():\n",
        ),
    ),
    Claim(
        1,
        "only the operator's word begins a new budget",
        ("tests/unit/runtime/test_budgets.py::test_only_an_operator_gives_leave_to_go_on_and_it_is_recorded",),
        Guard(_RUNTIME + "budgets.py", "        await self._append(_RENEWED, person, principal)\n", ""),
    ),
    Claim(
        1,
        "what policy denies is not dispatched",
        (_GATEWAY + "test_policy_denies_before_any_claim_and_names_its_rule",),
        Guard(
            _RUNTIME + "authority.py",
            '    if decision.outcome != "allow":\n        raise PolicyDenied(\n',
            "    if False:\n        raise PolicyDenied(\n",
        ),
    ),
    Claim(
        1,
        "what needs a person does not happen without a signed answer",
        (
            _GATEWAY + "test_what_needs_a_person_waits_for_a_signed_yes_and_then_happens_once",
            _GATEWAY + "test_a_no_reaches_the_agent_as_data_and_nothing_happens",
        ),
        Guard(_RUNTIME + "approvals.py", '        if state == "waiting":\n', "        if False:\n"),
    ),
    Claim(
        1,
        "an approval is for exactly what was shown",
        (_GATEWAY + "test_an_approval_is_not_voided_by_looking_again_but_by_any_change_of_meaning",),
        Guard(
            _RUNTIME + "approvals.py",
            "            if same and rules.still_covers(question.pending, shown):\n",
            "            if same:\n",
        ),
    ),
    Claim(
        1,
        "a principal stays below its ceiling",
        (_GATEWAY + "test_an_action_above_the_ceiling_is_denied_before_policy",),
        Guard(_CORE + "authority.py", "        if patterns and not matcher(patterns)(value):\n", "        if False:\n"),
    ),
    Claim(
        1,
        "declaring less risk does not slip under a ceiling",
        (_GATEWAY + "test_declaring_less_risk_does_not_slip_under_a_ceiling",),
        Guard(
            _RUNTIME + "authority.py",
            "    return effective_risk(run.request.action, document.risk, all_categories(document))\n",
            "    return run.request.risk\n",
        ),
    ),
    Claim(
        2,
        "an element whose name changed is not acted upon",
        (
            _GATEWAY + "test_an_element_that_was_renamed_after_it_was_seen_is_refused_at_the_first_fence",
            _GATEWAY + "test_an_element_that_changes_between_claim_and_dispatch_is_released_with_no_effect",
        ),
        Guard(_CORE + "scene/fence.py", "            if before != after:\n", "            if False:\n"),
    ),
    Claim(
        2,
        "the final fence runs between the last read and the effect",
        (_GATEWAY + "test_an_element_that_changes_between_claim_and_dispatch_is_released_with_no_effect",),
        Guard(_RUNTIME + "attempt.py", "        self._fence(live)\n", ""),
    ),
    Claim(
        2,
        "a reference counts only in the session that was given it",
        (_GATEWAY + "test_a_reference_of_another_session_is_refused",),
        Guard(
            _RUNTIME + "session.py",
            '        return f"sc{self.scene_counter}-{self.scene_mark}"',
            '        return f"sc{self.scene_counter}"',
        ),
    ),
    Claim(
        3,
        "an id that has ended is answered from the journal and not run again",
        (
            _GATEWAY + "test_a_replayed_id_gives_the_stored_terminal_and_no_second_effect",
            _GATEWAY + "test_a_replay_needs_no_live_application_and_no_authority",
        ),
        Guard(_RUNTIME + "gateway.py", "        if isinstance(verdict, Replay):\n", "        if False:\n"),
    ),
    Claim(
        3,
        "an id stands for one meaning",
        (
            _GATEWAY + "test_the_same_id_with_another_meaning_conflicts",
            _GATEWAY + "test_the_same_id_with_other_text_conflicts",
        ),
        Guard(_RUNTIME + "gateway.py", "        if isinstance(verdict, ConflictVerdict):\n", "        if False:\n"),
    ),
    Claim(
        3,
        "two identical calls at once are one effect",
        (_GATEWAY + "test_two_identical_calls_at_once_are_one_effect_and_both_are_told",),
        Guard(_RUNTIME + "gateway.py", "            self._running[key] = run\n", ""),
    ),
    Claim(
        3,
        "without a durable claim nothing is dispatched",
        (_GATEWAY + "test_without_a_durable_claim_nothing_is_dispatched",),
        Guard(
            _RUNTIME + "operations.py",
            "        return (await self._journal.consume(uses, [event]))[0]\n",
            "        try:\n            return (await self._journal.consume(uses, [event]))[0]\n"
            "        except SurehandError:\n            return event\n",
        ),
    ),
    Claim(
        3,
        "a claim without an end is ended as unknown at the next start",
        (_GATEWAY + "test_a_claim_without_an_end_reads_as_unknown_after_a_restart_and_is_never_repeated",),
        Guard(
            _CORE + "history.py",
            "    if stored is None or stored.claim is None:\n        return Fresh()\n",
            "    if stored is None or stored.claim is None or stored.terminal is None or True:\n        return Fresh()\n",
        ),
    ),
    Claim(
        4,
        "an ignored text is a failure and never a success",
        (_GATEWAY + "test_a_field_that_ignores_the_text_is_a_failure_and_never_a_success",),
        Guard(
            _CORE + "verification.py",
            '        return ("holds" if texts_equal(node, seen, expected) else "fails"), seen\n\n    def _text',
            '        return "holds", seen\n\n    def _text',
        ),
    ),
    Claim(
        4,
        "a terminal that cannot be written is answered as unknown",
        (_GATEWAY + "test_a_terminal_that_cannot_be_written_is_answered_as_unknown",),
        Guard(
            _RUNTIME + "gateway.py",
            '            return self._reply(run, unknown_terminal(run, "The outcome could not be recorded."), None)\n',
            "            return self._reply(run, terminal, None)\n",
        ),
    ),
    Claim(
        4,
        "what is unknown is not tried again under another id until somebody looked",
        (_GATEWAY + "test_the_same_effect_under_a_new_id_is_refused_until_it_reconciles",),
        Guard(_RUNTIME + "operations.py", "        if open_one is not None:\n", "        if False:\n"),
    ),
    Claim(
        4,
        "a handler is said to run only where the application answered what was asked behind a named action",
        (
            _ACTING
            + "test_a_handler_is_said_to_run_only_where_the_application_answered_what_was_asked_behind_a_named_action",
        ),
        Guard(
            "src/surehand/adapters/atspi/acting_outcome.py",
            "    if in_order and behind is not None and not isinstance(behind, Failure):\n",
            "    if in_order:\n",
        ),
    ),
    Claim(
        1,
        "a path is a program to be run, and no installed application",
        (_INSTALLED + "test_a_path_is_a_program_also_where_it_is_an_applications_command",),
        Guard(
            "src/surehand/adapters/process.py",
            "    if not _PROGRAM.fullmatch(program) or program.endswith(_SUFFIX):\n",
            "    if program.endswith(_SUFFIX):\n",
        ),
    ),
    Claim(
        1,
        "what a host has signed is never put in other words",
        ("tests/unit/runtime/test_launched.py::test_what_a_host_signs_is_never_put_in_other_words",),
        Guard(
            _RUNTIME + "launched.py",
            '    if request.authority is not None or session.authority_mode == "host":\n        return request\n',
            "",
        ),
    ),
    Claim(
        6,
        "nothing that the screen said is kept in refusals",
        (_GATEWAY + "test_nothing_that_the_screen_said_is_kept_in_refusals_or_releases",),
        Guard(
            _RUNTIME + "operations.py",
            '    return {"code": error.code, "gate": error.gate or "", "message": error.message, **named}\n',
            "    return error.to_value()\n",
        ),
    ),
    Claim(
        1,
        "what only an operator may ask does not exist on the agent socket",
        ("tests/unit/daemon/test_calls.py::test_a_control_method_is_unknown_on_the_agent_socket",),
        Guard(
            "src/surehand/daemon/connection.py",
            "METHODS[self.role]:",
            'METHODS[self.role] | METHODS["control"]:',
        ),
    ),
    Claim(
        3,
        "a client never sends an effect again whose answer was lost",
        ("tests/unit/client/test_session.py::test_an_effect_whose_answer_was_lost_is_looked_up_not_sent_again",),
        Guard("src/surehand/client/session.py", "            if not lost.sent:\n", "            if True:\n"),
    ),
    Claim(
        6,
        "text from a screen does nothing in a page of ours",
        ("tests/unit/client/test_display.py::test_hostile_text_is_shown_and_does_nothing",),
        Guard("src/surehand/client/display.py", "html.escape(visible(str(text)), quote=True)", "str(text)"),
    ),
    Claim(
        6,
        "text from a screen does nothing in a terminal",
        ("tests/unit/cli/test_commands.py::test_nothing_from_a_screen_reaches_a_terminal_as_a_command",),
        Guard("src/surehand/cli/output.py", "shown = visible(words)", "shown = words"),
    ),
    Claim(
        7,
        "no text of a request is in the journal",
        (_GATEWAY + "test_no_secret_text_of_a_request_is_in_the_journal",),
        Guard(
            _CORE + "redaction.py",
            "            value[field] = _redact(value[field], digest)\n",
            "            pass\n",
        ),
    ),
    Claim(
        7,
        "a field that was secret once stays so when its application shows it in clear",
        (
            _COVERING + "test_a_password_that_is_shown_in_clear_is_read_out_by_nothing",
            _COVERING + "test_what_lies_in_a_secret_field_is_secret_too_and_stays_so",
        ),
        Guard(
            _RUNTIME + "covering.py",
            "is_secret(node) or parent in inside or node.handle in known.handles",
            "is_secret(node) or parent in inside",
        ),
    ),
    Claim(
        7,
        "a field whose label calls it a password, or that a rule names, is secret from the start",
        (
            _COVERING + "test_a_field_whose_label_calls_it_a_password_is_one_from_the_start",
            _COVERING + "test_a_field_that_a_rule_names_is_read_out_by_nothing",
        ),
        Guard(_RUNTIME + "covering.py", "secret = known.full or _is_named(node, names or {}, redact)", "pass"),
    ),
    Claim(
        7,
        "guessing at a password that is shown in clear is answered by nothing",
        (_COVERING + "test_a_guess_at_a_password_in_clear_is_answered_by_nothing",),
        Guard(_RUNTIME + "scenes.py", "desk.secret_fields.cover(surface, tree, redact)", "tree"),
    ),
    Claim(
        7,
        "a picture in whose taking a secret or a closed window moved is not given out",
        (
            _SHOTS + "test_a_secret_that_moves_on_while_pictures_are_taken_is_in_none",
            _SHOTS + "test_a_closed_window_that_moves_while_the_desktop_is_pictured_is_in_no_picture",
        ),
        Guard(_RUNTIME + "shots.py", "        if before.hidden == after.hidden:\n", "        if True:\n"),
    ),
    Claim(
        7,
        "a window that policy closes is in no picture of the desktop, whatever covers it",
        (
            _SHOTS + "test_a_window_of_a_closed_application_is_painted_whatever_covers_it",
            _SHOTS + "test_what_floats_above_is_painted_unless_its_process_is_open_and_shows_no_secret",
        ),
        Guard(_RUNTIME + "shots.py", "        covered += [*before.places(), *after.places()]\n", ""),
    ),
    Claim(
        7,
        "a secret without a known place costs the picture",
        (_SHOTS + "test_a_secret_without_a_known_place_costs_the_picture_or_its_whole_window",),
        Guard(
            _RUNTIME + "shots.py",
            '        if is_secret(node) and (node.bounds is not None or "showing" in node.states)\n',
            "        if is_secret(node) and node.bounds is not None\n",
        ),
    ),
    Claim(
        7,
        "secrets are painted with the margin that their toolkit needs",
        (_SHOTS + "test_a_secret_is_painted_with_the_margin_that_its_toolkit_needs",),
        Guard(
            _RUNTIME + "shots.py",
            "    return (x - wide, y - tall, width + 2 * wide, height + 2 * tall)\n",
            "    return bounds\n",
        ),
    ),
    Claim(
        7,
        "what was read of a window that policy closed meanwhile is not given out",
        (_CONTENTS + "test_what_was_read_of_a_window_that_became_closed_meanwhile_is_not_given_out",),
        Guard(_RUNTIME + "scenes.py", "        await self._check_read(session, now)\n\n", "\n"),
    ),
    Claim(
        7,
        "a withheld output is in no reply, record, log or page, nor is what it changed",
        (_WITHHELD + "test_a_withheld_output_is_durable_honest_and_nowhere",),
        Guard(
            _RUNTIME + "agent.py",
            'if seen is not None and reply.terminal is not None and reply.status != "withheld":',
            "if seen is not None and reply.terminal is not None:",
        ),
    ),
    Claim(
        7,
        "output past its bound, or that cannot be looked through, is withheld",
        (
            _WITHHELD + "test_output_at_the_bound_is_released_and_past_it_withheld",
            _WITHHELD + "test_an_output_that_cannot_be_looked_through_is_withheld_and_the_operation_no_failure",
        ),
        Guard(_CORE + "release.py", "    if size > limits.OUTPUT_BYTES_MAX:\n", "    if False:\n"),
    ),
    Claim(
        7,
        "the picture that an approver is shown is the one whose hash is signed, or none",
        (_CROPS + "test_another_picture_in_its_place_is_shown_to_nobody",),
        Guard(
            _RUNTIME + "crops.py",
            "    return png is not None and expected is not None and crop_hash(png) == expected\n",
            "    return png is not None\n",
        ),
    ),
    Claim(
        6,
        "cutting a long result leads nothing of a screen out of its quotes",
        ("tests/unit/tools/test_projection.py::test_no_line_of_a_screen_leaves_its_quotes_because_it_was_cut",),
        Guard(
            "src/surehand/tools/projection.py",
            '    return "\\n".join([*head, marker, *tail])\n',
            '    return text[: left // 2] + "\\n" + marker + "\\n" + text[-left // 2 :]\n',
        ),
    ),
    Claim(
        7,
        "a secret field is read out by nothing, however it is asked for",
        (_REACH + "test_a_secret_is_in_no_answer_error_event_or_repr_however_it_is_asked_for",),
        Guard(_CORE + "release.py", "    return node.secret or node.role in SECRET_ROLES\n", "    return False\n"),
    ),
    Claim(
        7,
        "a secret goes to the application it is bound to, by what its process proves, and to no other",
        (
            _SECRETS + "test_a_secret_for_another_application_is_refused_before_anybody_is_asked",
            _SECRETS + "test_a_name_that_an_application_gives_itself_opens_nothing",
        ),
        Guard(
            _CORE + "secrets.py",
            "    if app not in binding.apps or is_interpreter(app):\n        return False\n",
            "",
        ),
    ),
    Claim(
        7,
        "a page gets a secret only at an origin it is bound to, to the letter",
        (_SECRETS + "test_a_page_gets_a_secret_only_at_an_origin_it_is_bound_to",),
        Guard(_CORE + "secrets.py", "        return place in binding.origins\n", "        return True\n"),
    ),
    Claim(
        7,
        "a process that became another program since it was looked at gets no secret",
        (_SECRETS + "test_a_process_that_became_another_program_gets_nothing",),
        Guard(
            _RUNTIME + "secrets.py",
            "        app = self._identify(surface.app.pid) if surface.app.pid else surface.app.key\n",
            "        app = surface.app.key\n",
        ),
    ),
    Claim(
        7,
        "an enrolled secret that was exchanged after the yes is not entered",
        (_SECRETS + "test_a_secret_that_was_exchanged_between_decision_and_act_is_not_entered",),
        Guard(
            _RUNTIME + "secrets.py",
            " or opened.secrets.get(name) != agreed or",
            " or",
        ),
    ),
    Claim(
        7,
        "an old vault that is put back opens nothing",
        (_SECRETS + "test_an_old_vault_that_was_put_back_is_refused",),
        Guard(
            _RUNTIME + "secrets.py",
            "        await self._check_recorded(opened)\n        return opened\n",
            "        return opened\n",
        ),
    ),
    Claim(
        7,
        "a vault in which anything was rearranged opens nothing",
        ("tests/unit/test_secrets_vault.py::test_what_somebody_rearranged_opens_nothing",),
        Guard(
            "src/surehand/adapters/secrets_vault.py",
            "            cipher.decrypt(_NONCE, data[_SALT_BYTES:], _whole(file))\n",
            "            pass\n",
        ),
    ),
    Claim(
        7,
        "a field that was given a secret is never read again, however its application shows it",
        (_SECRETS + "test_a_field_that_was_given_a_secret_is_never_read_again",),
        Guard(_RUNTIME + "attempt.py", "            self.secret.on_entering()\n", "            pass\n"),
    ),
    Claim(
        7,
        "a secret is overwritten when its run ends, whatever its end",
        (_SECRETS + "test_a_secret_is_overwritten_when_its_run_ends",),
        Guard(_RUNTIME + "gateway.py", "            run.forget_secret()\n", ""),
    ),
    Claim(
        7,
        "a secret is given to nothing without a permit",
        (_SECRETS + "test_a_secret_without_a_permit_is_a_defect",),
        Guard(
            _RUNTIME + "secrets.py",
            "        if run.permit is None or surface is None:\n",
            "        if surface is None:\n",
        ),
    ),
    Claim(
        7,
        "a variable that is a secret is in the environment of nothing that the daemon starts",
        (_SECRETS + "test_a_listed_variable_is_a_secret_and_is_gone_from_the_environment",),
        Guard(
            _RUNTIME + "secrets.py",
            "        text = environ.pop(one.name, None)\n",
            "        text = environ.get(one.name)\n",
        ),
    ),
    Claim(
        7,
        "an agent is not told which secrets there are",
        (_SECRETS + "test_an_agent_is_not_told_which_secrets_there_are",),
        Guard(
            _CORE + "secrets.py",
            "    if binding is None or not is_bound(binding, app, place):\n",
            "    if binding is None:\n        raise InvalidRequest(reference)\n    if not is_bound(binding, app, place):\n",
        ),
    ),
    Claim(
        7,
        "no query finds a secret field by what is in it, even where an adapter left it there",
        ("tests/unit/core/scene/test_query.py::test_values_are_found_and_secrets_are_not",),
        Guard(
            _CORE + "scene/query.py",
            "None if nodes[place].secret else nodes[place].value",
            "nodes[place].value",
        ),
    ),
    Claim(
        7,
        "guessing at a secret's value is answered by nothing",
        (_REACH + "test_a_secret_is_in_no_answer_error_event_or_repr_however_it_is_asked_for",),
        Guard(
            _RUNTIME + "watch.py",
            "None if secret is None else await observer.equals(surface.surface_id, node.handle, secret)",
            'await observer.equals(surface.surface_id, node.handle, secret or expectation.equals or "")',
        ),
    ),
    Claim(
        7,
        "no keys that copy are pressed while a field that holds a secret has the keyboard",
        (
            _SECRETS + "test_nothing_is_copied_while_a_field_that_holds_a_secret_has_the_keyboard",
            "tests/unit/input/test_keys.py::test_chords_that_copy_are_known",
        ),
        Guard(_RUNTIME + "resolve.py", "if aim.window and copies_anything(request.action):", "if False:"),
    ),
    Claim(
        7,
        "a secret stops when its application moves the keyboard on",
        ("tests/desktop/test_x11_keyboard.py::test_a_secret_stops_when_its_application_moves_the_keyboard_on",),
        Guard("src/surehand/adapters/x11/delivery.py", "if index and line.attempt.secret is not None:", "if False:"),
    ),
    Claim(
        7,
        "what a client reads as a resource is bounded as what a tool tells",
        ("tests/unit/mcp/test_resources.py::test_what_is_read_is_bounded_as_what_a_tool_tells",),
        Guard(_MCP + "resources.py", "shown = projected(found, context.turn, self._key)", "shown = found"),
    ),
    Claim(
        7,
        "a page whose origin nobody proves gets no secret",
        (_SECRETS + "test_a_page_whose_origin_nobody_proves_gets_no_secret",),
        Guard(
            _RUNTIME + "resolve.py",
            "return UNPROVEN_ORIGIN if shows_page and not is_origin(self.place) else self.place",
            "return self.place",
        ),
    ),
    Claim(
        7,
        "how long a typed secret is is told by nothing",
        (_SECRETS + "test_how_long_a_typed_secret_is_is_told_by_nothing",),
        Guard(_CORE + "release.py", "if name not in _COUNTS]", "]"),
    ),
    Claim(
        7,
        "nothing is selected in a field that holds a secret",
        (_SECRETS + "test_nothing_is_selected_in_a_field_that_holds_a_secret",),
        Guard(_CORE + "safety.py", "isinstance(action, _TAKING) and node is not None", "False"),
    ),
    Claim(
        1,
        "a yes to a secret is none to the one that takes its place",
        (
            _SECRETS + "test_a_yes_to_a_secret_is_none_to_the_one_that_takes_its_place",
            _SECRETS + "test_a_yes_to_a_plan_that_enters_a_secret_is_none_to_the_one_that_takes_its_place",
        ),
        Guard(_CORE + "policy/proof.py", "if not found.changed_at_ms:", "if True:"),
    ),
    Claim(
        7,
        "a rule that redacts nothing for a misspelling, or an answer of an engine that does, is refused",
        (
            "tests/unit/core/policy/test_toml_rules.py::test_a_broken_file_opens_nothing_at_start_or_reload",
            "tests/unit/policy/test_engine_answers.py::test_an_answer_that_is_none_is_a_deny_of_its_kind",
        ),
        Guard("src/surehand/model/decision.py", "if _REDACTED.fullmatch(one) is None:", "if False:"),
    ),
    Claim(
        5,
        "a stop between two units of input keeps the rest back and releases what is held",
        ("tests/unit/runtime/test_attempt.py::test_a_person_stops_the_rest_of_an_input_plan",),
        Guard(_RUNTIME + "attempt.py", "        if reason is not None:\n", "        if False:\n"),
    ),
    Claim(
        5,
        "nobody disconnects before the server has released what was held",
        ("tests/desktop/test_x11_pointer.py::test_nobody_disconnects_before_the_server_has_released_what_was_held",),
        Guard(
            "src/surehand/adapters/x11/input.py",
            "        self._server.sync()\n        for held in gone:\n",
            "        self._server.conn.flush()\n        for held in gone:\n",
        ),
    ),
    Claim(
        5,
        "nothing is pressed that no guard would release",
        ("tests/crash/test_guard.py::test_without_a_guard_nothing_is_pressed",),
        Guard(
            _RUNTIME + "guard.py",
            '                raise Unavailable("the input guard is not running"',
            "                return  # ",
        ),
    ),
    Claim(
        8,
        "a permit is used once, whoever races",
        (
            "tests/contracts/test_journal_contract.py::test_a_replayed_permit_is_refused_and_nothing_moves",
            "tests/contracts/test_journal_contract.py::test_of_racing_holders_of_one_permit_one_wins",
        ),
        Guard(_CORE + "appending.py", "            if used >= uses_max:\n", "            if False:\n"),
    ),
    Claim(
        8,
        "a changed record is found by the auditor at its place",
        ("tests/unit/test_verify.py::test_any_bit_of_an_export_flipped_is_found_at_its_line",),
        Guard(
            "src/surehand/verify/records.py",
            "    if record_hash(record) != record.record_hash:\n",
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "a yes for one window does not count in another of the same application",
        (_PEOPLE + "test_a_yes_for_one_window_does_not_count_in_another_of_the_same_application",),
        Guard(_CORE + "hashing.py", "    if window:\n", "    if False:\n"),
    ),
    Claim(
        1,
        "a no after a yes stops what was not begun",
        (_PEOPLE + "test_a_no_after_a_yes_stops_what_was_not_claimed_yet",),
        Guard(
            _RUNTIME + "approvals.py",
            '        if state == "denied":\n            self._close(question, state)\n',
            '        if state == "denied":\n            return\n',
        ),
    ),
    Claim(
        1,
        "a grant that ran out while a person thought authorises nothing",
        (_PEOPLE + "test_a_grant_that_ran_out_while_a_person_thought_authorises_nothing",),
        Guard(
            _RUNTIME + "gateway.py",
            "            left_ms = self.authority.authorise(run)\n",
            "            left_ms = run.request.deadline_ms\n",
        ),
    ),
    Claim(
        3,
        "what waited behind its own unknown twin is not sent",
        (_ONCE + "test_a_twin_that_waited_behind_an_unknown_is_refused_and_not_sent",),
        Guard(_RUNTIME + "gateway.py", "                self._check_reconciled(run)\n", ""),
    ),
    Claim(
        4,
        "a caller that gives up after dispatch is told what became of it",
        (_ONCE + "test_a_caller_that_cancels_after_dispatch_is_told_what_became_of_it",),
        Guard(
            _RUNTIME + "gateway.py",
            "                    run.cancelled.set()\n",
            "                    run.cancelled.set()\n                    raise\n",
        ),
    ),
    Claim(
        6,
        "a window that is called otherwise now is put before policy again",
        (
            _REACH + "test_a_title_that_became_closed_stops_what_was_seen_under_another",
            _REACH + "test_a_dialog_that_came_to_ask_for_something_consequential_is_not_answered_unasked",
        ),
        Guard(_RUNTIME + "gateway.py", "or now.title == was.title:\n", "or True:\n"),
    ),
    Claim(
        7,
        "a window closed to reading tells nothing to who knows its id",
        (_REACH + "test_a_window_closed_to_reading_tells_nothing_even_to_who_knows_its_id",),
        Guard(
            _RUNTIME + "where.py",
            "        await parts.authority.check_read(session, surface)\n        return (surface,)\n",
            "        return (surface,)\n",
        ),
    ),
    Claim(
        8,
        "an answer that came too late does not make an operation unreadable",
        (_PEOPLE + "test_an_approval_event_after_a_claim_does_not_keep_recovery_from_ending_it",),
        Guard(_CORE + "history.py", "frozenset({REFUSED, APPROVED, DENIED})", "frozenset({REFUSED})"),
    ),
    Claim(
        2,
        "a bare label never becomes the name of something else",
        ("tests/unit/runtime/test_shown.py::test_a_changed_context_is_stale_whatever_was_looked_at_in_between",),
        Guard(
            _RUNTIME + "shown.py",
            "    if target.context_hash != meaning.target.context_hash:\n",
            "    if False:\n",
        ),
    ),
    Claim(
        5,
        "an agent that asked a person in does not act until it is handed back",
        (_ASKED + "test_an_agent_that_asked_a_person_in_does_not_act_until_it_is_handed_back",),
        Guard(
            _RUNTIME + "session.py",
            "        for request_id in self.waits_for:\n            return request_id\n",
            "",
        ),
    ),
    Claim(
        5,
        "what waits at the last gate is stopped when a person takes over",
        (_ASKED + "test_what_waits_at_the_last_gate_is_stopped_when_a_person_takes_over",),
        Guard(_RUNTIME + "run.py", "        self.session.check_not_handed_over()\n", ""),
    ),
    Claim(
        5,
        "input under way stops when a person takes over",
        (_ASKED + "test_input_under_way_stops_between_two_units_when_a_person_takes_over",),
        Guard(_RUNTIME + "gateway.py", " or run.session.is_held():\n", ":\n"),
    ),
    Claim(
        5,
        "a new session is no way around a person who took over",
        (_ASKED + "test_a_new_session_is_no_way_around_a_person_who_took_over",),
        Guard(
            _RUNTIME + "people.py",
            "            self.brakes.on(_hold_of(ask, person, self._clock.wall_ms()))\n",
            "",
        ),
    ),
    Claim(
        5,
        "an agent that is stopped in one session is not free in the next one",
        (
            _HALTING + "test_whose_session_is_paused_is_not_free_in_another_one_and_others_are_let_be",
            _HALTING + "test_who_was_paused_in_one_session_is_paused_after_a_restart_of_the_daemon",
        ),
        Guard(_RUNTIME + "brakes.py", " or session.session_id not in self.others)", ")"),
    ),
    Claim(
        5,
        "what a person stopped has no effect any more",
        (_HALTING + "test_a_stop_between_claim_and_dispatch_leaves_no_effect_and_frees_the_id",),
        Guard(
            _RUNTIME + "run.py",
            "        self.check_not_halted()\n        if self.cancelled",
            "        if self.cancelled",
        ),
    ),
    Claim(
        5,
        "input that a person stopped ends between two units",
        (_HALTING + "test_a_stop_during_input_ends_it_between_two_units_and_says_what_was_delivered",),
        Guard(_RUNTIME + "gateway.py", "            if run.halted or (touched", "            if (touched"),
    ),
    Claim(
        5,
        "a stop between two steps of a batch begins none after it",
        (_HALTING + "test_a_stop_between_two_steps_begins_none_after_it",),
        Guard(
            _RUNTIME + "agent.py",
            "            _check_not_halted(session, halts)\n            reply",
            "            reply",
        ),
    ),
    Claim(
        5,
        "after a stop agents stay paused",
        (_HALTING + "test_after_a_stop_agents_stay_paused_and_the_record_says_who_when_and_why",),
        Guard(_RUNTIME + "session.py", "        self.brakes.check(self)\n", ""),
    ),
    Claim(
        5,
        "paused stays paused over a restart",
        (_HALTING + "test_paused_stays_paused_over_a_restart_and_taken_stays_taken",),
        Guard(_RUNTIME + "halting.py", 'elif event.type == _SET and (event.payload["session"] is None', "elif (False"),
    ),
    Claim(
        5,
        "a stop works while nothing can be recorded",
        (_HALTING + "test_a_stop_works_while_nothing_can_be_recorded",),
        Guard(
            _RUNTIME + "halting.py",
            "    except SurehandError:\n        return False\n    return True\n",
            "    except SurehandError:\n        raise\n    return True\n",
        ),
    ),
    Claim(
        5,
        "no robot presses the stop key",
        ("tests/desktop/test_stopping.py::test_no_robot_presses_the_stop_key_or_keeps_the_person_from_it",),
        Guard(
            "src/surehand/adapters/x11/interruptions.py",
            " and event.sourceid not in self._robots:\n",
            ":\n",
        ),
    ),
    Claim(
        5,
        "taking the stop key out of the keymap takes no stop away",
        ("tests/unit/input/test_stop_key.py::test_taking_the_key_out_of_the_keymap_takes_no_stop_away",),
        Guard(
            _CORE + "input/stop_key.py",
            "        for keycode, keysyms in keymap.items():\n",
            "        self._codes = {keysym: set() for keysym in self._codes}\n"
            "        for keycode, keysyms in keymap.items():\n",
        ),
    ),
    Claim(
        5,
        "the badge that says that an agent acts takes no click",
        ("tests/desktop/test_marker.py::test_it_takes_no_click_and_no_focus_and_is_in_no_picture_of_a_window",),
        Guard(
            "src/surehand/adapters/x11/marker.py",
            "        shape.Rectangles(_SET, _INPUT, 0, window, 0, 0, 0, [], is_checked=True).check()\n",
            "        del shape\n",
        ),
    ),
    Claim(
        7,
        "a picture for people who watch is painted like any other",
        ("tests/unit/runtime/test_frames.py::test_a_picture_for_people_is_painted_like_any_other",),
        Guard(
            _RUNTIME + "frames.py",
            "        return await asyncio.to_thread(_encoded, shot.capture, shot.png)\n",
            "        return await asyncio.to_thread(_encoded, *(await desk.screen.capture(None)))\n",
        ),
    ),
    Claim(
        5,
        "an agent cannot stop, pause or resume anybody",
        (_HALTING + "test_an_agent_cannot_stop_pause_or_resume_anybody",),
        Guard(_RUNTIME + "host.py", 'table = AGENT if channel.role == "agent" else CONTROL', "table = AGENT | CONTROL"),
    ),
    Claim(
        5,
        "an agent cannot hand itself back",
        (_ASKED + "test_an_agent_cannot_hand_itself_back",),
        Guard(
            _RUNTIME + "people.py",
            '        if ask.status == "taken":\n            raise AuthorityDenied(',
            "        if False:\n            raise AuthorityDenied(",
        ),
    ),
    Claim(
        7,
        "what agents and people tell each other is in no record",
        (_ASKED + "test_a_person_sees_the_agents_words_escaped_and_the_journal_keeps_none_of_either_side",),
        Guard(_RUNTIME + "people.py", 'redacted(text, self._digest) if name in {"reason", "note"} else text', "text"),
    ),
    Claim(
        7,
        "another principal learns nothing of an approval",
        (_ASKED + "test_another_principal_learns_nothing_of_an_approval",),
        Guard(
            _RUNTIME + "approvals.py",
            "self._questions.values() if one.pending.principal == principal]\n\n",
            "self._questions.values()]\n\n",
        ),
    ),
    Claim(
        1,
        "over HTTP nobody is served without the token",
        (_HTTP + "test_who_has_no_right_token_host_or_origin_is_turned_away_before_anything_is_looked_at",),
        Guard(
            _MCP + "http.py", '        elif not self._knows(headers.one("authorization")):\n', "        elif False:\n"
        ),
    ),
    Claim(
        1,
        "a page whose name was pointed at this machine reaches no MCP server here",
        (_HTTP + "test_who_has_no_right_token_host_or_origin_is_turned_away_before_anything_is_looked_at",),
        Guard(_MCP + "http.py", '        if headers.one("host") not in self._hosts:\n', "        if False:\n"),
    ),
    Claim(
        1,
        "a script of another page reaches no MCP server here",
        (_HTTP + "test_who_has_no_right_token_host_or_origin_is_turned_away_before_anything_is_looked_at",),
        Guard(
            _MCP + "http.py",
            '        elif headers.all("origin") and headers.one("origin") not in self._origins:\n',
            "        elif False:\n",
        ),
    ),
    Claim(
        7,
        "the name of another session opens no resource",
        ("tests/unit/mcp/test_resources.py::test_what_is_not_ours_is_not_there",),
        Guard(
            _MCP + "resources.py",
            '        elif address.kind != "journal" and address.of != CURRENT:\n            raise _no_such(uri)\n',
            "",
        ),
    ),
    Claim(
        5,
        "a call that its client cancelled is cancelled at the daemon",
        ("tests/unit/mcp/test_stdio.py::test_a_cancelled_call_is_cancelled_at_the_daemon_and_never_answered",),
        Guard(
            "src/surehand/client/streaming.py",
            "                transport.write(self._wire.cancel(call_id))\n",
            "                pass\n",
        ),
    ),
    Claim(
        3,
        "an effect whose answer was lost is not presented to a daemon with another journal",
        ("tests/unit/client/test_session.py::test_an_effect_is_not_presented_to_a_daemon_with_another_journal",),
        Guard("src/surehand/client/session.py", "        if link.welcome.journal != journal:\n", "        if False:\n"),
    ),
    Claim(
        2,
        "a text that a client follows gives no label another meaning",
        ("tests/unit/runtime/test_shown.py::test_a_text_that_somebody_else_reads_gives_no_label_another_meaning",),
        Guard(_RUNTIME + "shown.py", "if not self._knows(label)][:room]", "if label][:room]"),
    ),
    Claim(
        1,
        "a desktop that a person uses is attached only where its operator paired it",
        (_CURRENT + "test_it_is_refused_until_the_operator_pairs_it",),
        Guard(_RUNTIME + "current.py", "    if own in paired:\n", "    if own:\n"),
    ),
    Claim(
        5,
        "nothing is sent through the pointer or keyboard of a desktop that a person uses",
        (
            _CURRENT + "test_what_the_operators_rule_covers_is_done_through_accessibility"
            "_and_nothing_by_pointer_or_keyboard",
        ),
        Guard(_RUNTIME + "compose.py", "    if desk.isolation == SHARED:\n", "    if False:\n"),
    ),
    Claim(
        1,
        "the terminal of whoever is asked is out of every agent's reach while they are connected",
        (
            _APPROVALS + "test_the_terminal_of_whoever_is_asked_is_out_of_every_agents_reach_while_they_are_there",
            _SELF + "test_the_approvers_terminal_cannot_be_read_typed_into_or_pressed",
            _SELF + "test_no_tool_answers_no_program_does_and_inside_there_is_no_socket_and_no_key",
        ),
        Guard(
            _RUNTIME + "facts.py",
            "                own_pids=self._own_pids | self._attended | self._claiming,\n",
            "                own_pids=self._own_pids | self._claiming,\n",
        ),
    ),
    Claim(
        1,
        "what a window manager, a bus, a launcher or an editor would do for an agent is asked about itself",
        (
            "tests/unit/core/policy/test_defaults.py::TestProcessRun::test_every_road_to_a_program_asks_even_in_isolation",
            _SELF + "test_no_chord_no_message_on_a_bus_no_desktop_file_and_no_editor_answers",
        ),
        Guard(
            "src/surehand/core/policy/categories.py",
            "    if isinstance(action, Press) and any(is_window_manager_chord(chord) for chord in action.chords):\n",
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "an answer at the console page is to the record that this browser was shown, for long enough to be read",
        (_ANSWERED + "test_an_answer_comes_neither_before_the_question_was_shown_nor_before_it_could_be_read",),
        Guard(_CONSOLE + "pages/approvals.py", "    _check_shown(pending, said, memory)\n", ""),
    ),
    Claim(
        1,
        "nothing is signed at the console page without the key that was chosen, opened with its passphrase",
        (_PAGE_KEYS + "test_without_the_right_key_and_passphrase_nothing_is_signed",),
        Guard(
            _CONSOLE + "credentials.py",
            "            return store.approver(approver)\n        if not passphrase:\n",
            "            return store.approver(approver)\n        return SigningKey(bytes(32))\n        if not passphrase:\n",
        ),
    ),
    Claim(
        1,
        "passphrases are not guessed at the console page faster than a person types",
        (_PAGE_KEYS + "test_guessing_is_paused_after_as_many_wrong_passphrases_as_there_may_be",),
        Guard(_CONSOLE + "credentials.py", "            if left_s > 0:\n", "            if False:\n"),
    ),
    Claim(
        1,
        "a link to the console page opens it once",
        (_DOOR + "test_a_link_opens_once_and_what_it_begins_is_kept_from_scripts_and_other_sites",),
        Guard(_CONSOLE + "door.py", "        self._link = None\n", ""),
    ),
    Claim(
        1,
        "no other site, page or frame reads or sends anything at the console page",
        (_DOOR + "test_another_origin_another_site_and_a_frame_are_refused",),
        Guard(
            _CONSOLE + "door.py",
            """            (is_link or site in {None, "same-origin"} or (site == "none" and not is_post), "another site asks"),\n""",
            "",
        ),
    ),
    Claim(
        1,
        "no form counts at the console page without its session's token",
        (_DOOR + "test_a_form_needs_its_origin_and_its_sessions_token",),
        Guard(
            _CONSOLE + "door.py",
            """if session is None or not _same(form.pop(CSRF_FIELD, ""), session.csrf):""",
            "if session is None:",
        ),
    ),
    Claim(
        1,
        "another user's connection is refused at the console page, whatever it brings",
        (_DOOR + "test_another_users_connection_is_refused_with_the_right_cookie_too",),
        Guard(_CONSOLE + "door.py", "peer is not None and peer.uid == self._uid", "True"),
    ),
    Claim(
        1,
        "a browser that was left open is out of the console page after its idle time, whatever happens meanwhile",
        (_DOOR + "test_what_a_page_asks_by_itself_keeps_no_session_alive",),
        Guard(_CONSOLE + "door.py", 'looks = scope["path"] != EVENTS and not headers.all(BY_ITSELF)', "looks = True"),
    ),
    Claim(
        1,
        "a stream of the console page tells nothing once its session is over",
        ("tests/unit/console/test_serving.py::test_a_stream_tells_nothing_once_its_session_is_over",),
        Guard(_CONSOLE + "events.py", "while shared.door.stands(who):", "while True:"),
    ),
    Claim(
        1,
        "a connection to the console page whose user the kernel cannot tell any more counts as nobody's",
        ("tests/unit/console/test_peers.py::test_a_connection_whose_other_end_was_closed_is_nobodys",),
        Guard(_CONSOLE + "peers.py", "return found if found.inode else None", "return found"),
    ),
    Claim(
        5,
        "no silent or slow connection, and none of another user, keeps a person out of the console page",
        (
            "tests/unit/console/test_serving.py::test_a_later_request_of_a_connection_has_no_more_time_than_the_first",
            "tests/unit/console/test_serving.py::test_a_connection_of_another_user_is_closed_before_it_asks",
        ),
        Guard(
            _CONSOLE + "connections.py", "cycle is None or cycle.response_complete or cycle.more_body", "cycle is None"
        ),
    ),
    Claim(
        1,
        "a browser that shows the console page is neither read nor pictured nor operated by an agent",
        (
            _AWAY + "test_a_page_and_its_browsers_are_out_of_reach_until_its_session_ends",
            _AWAY_THERE + "test_a_browser_that_shows_the_console_is_neither_read_nor_pictured_nor_operated",
        ),
        Guard(
            _RUNTIME + "attending.py",
            "union(*self._lines.values(), *self._browsers.values())",
            "union(*self._lines.values())",
        ),
    ),
    Claim(
        1,
        "what was decided about reading one process is not kept for another of the same program",
        (_AWAY + "test_of_two_processes_of_one_program_only_the_one_that_shows_the_page_is_closed",),
        Guard(
            _RUNTIME + "authority.py",
            """        process = f"{surface.app.pid}/{self.claims_noted(surface)}"\n""",
            """        process = ""\n""",
        ),
    ),
    Claim(
        6,
        "a text on the console page is only text, wherever it came from",
        ("tests/browser/test_page.py::test_a_hostile_text_in_every_place_is_only_text",),
        Guard(_CONSOLE + "views.py", "        autoescape=True,\n", "        autoescape=False,\n"),
    ),
    Claim(
        1,
        "the yes to a plan covers its own steps only, each as it was shown",
        (_APPROVALS + "test_a_plan_covers_no_other_step_no_other_order_and_no_other_id",),
        Guard(
            _CORE + "approval.py",
            "    if index >= len(hashes) or not hmac.compare_digest(hashes[index], presentation_hash(presentation)):\n",
            "    if index >= len(hashes):\n",
        ),
    ),
    Claim(
        1,
        "of a plan nothing is begun before its yes",
        (_APPROVALS + "test_a_form_is_asked_about_once_with_all_its_steps_and_then_done",),
        Guard(_RUNTIME + "agent.py", "    if waits is not None:\n", "    if False:\n"),
    ),
    Claim(
        1,
        "at level A a yes to anything consequential takes a key behind a passphrase",
        (_APPROVALS + "test_what_is_consequential_takes_a_key_behind_a_passphrase_and_a_no_does_not",),
        Guard(
            _CORE + "approval.py",
            '    if needs_passphrase and answer.answer == "approve" and not approver.passphrase:\n',
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "an authenticator's assertion is for one answer and none other",
        (_WEBAUTHN + "test_an_assertion_for_one_answer_is_none_for_another",),
        Guard(
            _CORE + "webauthn.py",
            '    if found.get("challenge") != base64.urlsafe_b64encode(asked).rstrip(b"=").decode("ascii"):\n',
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "an authenticator that did not verify its person says nothing",
        (
            _WEBAUTHN + "test_each_wrong_word_of_browser_or_authenticator_is_refused_although_it_is_signed",
            _CREDENTIALS + "test_what_is_consequential_at_level_a_takes_user_verification",
        ),
        Guard(_CORE + "webauthn.py", "bool(flags & _VERIFIED)", "True"),
    ),
    Claim(
        1,
        "a credential answers in a console page that the daemon knows, and in no other page of this machine",
        (_WEBAUTHN + "test_each_wrong_word_of_browser_or_authenticator_is_refused_although_it_is_signed",),
        Guard(_CORE + "webauthn.py", "(pages is not None and int(origin[1] or _HTTP_PORT) not in pages)", "False"),
    ),
    Claim(
        1,
        "a copy of an authenticator and a replayed assertion are refused",
        (_CREDENTIALS + "test_a_replayed_assertion_and_a_cloned_authenticator_are_refused_and_nothing_moves",),
        Guard(_RUNTIME + "credentials.py", "        webauthn.check_count(proof.told, credential)\n", ""),
    ),
    Claim(
        1,
        "a credential is enrolled only with a code that an allowed key signed for, at level A one behind a passphrase",
        (
            _WEBAUTHN + "test_only_an_allowed_key_invites_and_at_level_a_one_behind_a_passphrase",
            _CREDENTIALS + "test_no_agent_can_invite_itself",
        ),
        Guard(
            _CORE + "approvers.py",
            '        if self._trust_level == "A" and not key.passphrase:\n',
            "        if False:\n",
        ),
    ),
    Claim(
        1,
        "a credential goes with the key that enrolled it",
        (
            _WEBAUTHN + "test_a_credential_counts_only_while_the_key_that_enrolled_it_does",
            _CREDENTIALS + "test_a_key_that_was_taken_away_takes_its_credentials_with_it",
        ),
        Guard(_CORE + "approvers.py", " if (one.approver, one.enrolled_by) in keys)", ")"),
    ),
    Claim(
        8,
        "the auditor finds a person's answer that the person did not sign",
        (_CREDENTIALS + "test_the_auditor_checks_each_answer_again_and_finds_each_forgery",),
        Guard(
            "src/surehand/verify/proofs.py",
            "        if not _holds(algorithm, public_key, message, signature):\n",
            "        if False:\n",
        ),
    ),
    Claim(
        1,
        "at level B the kernel lets an agent reach its own socket only",
        (
            _LEVEL_B + "test_the_kernel_lets_a_uid_reach_its_own_socket_only",
            "tests/desktop/test_level_b.py::test_an_agent_with_a_shell_reaches_its_own_socket_and_nothing_else",
        ),
        Guard(
            "src/surehand/daemon/paths.py",
            "    elif not uids or not _open_to(path, uids - {os.getuid()}):\n",
            "    else:\n",
        ),
    ),
    Claim(
        4,
        "level B is claimed only while no agent can change what the daemon trusts",
        (
            _LEVEL_B + "test_users_apart_are_level_b_only_while_no_agent_can_change_what_the_daemon_trusts",
            "tests/desktop/test_level_b.py::test_a_level_that_does_not_hold_is_not_claimed",
        ),
        Guard(_RUNTIME + "config.py", "        if self.held_back or not agents", "        if not agents"),
    ),
    Claim(
        4,
        "level B is claimed only while no link and no access list lets an agent change what the daemon trusts",
        (
            _LEVEL_B + "test_each_link_is_looked_at_where_it_stands",
            _LEVEL_B + "test_an_access_list_that_lets_an_agent_write_takes_the_level_back",
        ),
        Guard(_RUNTIME + "levels.py", "    return _is_listed(part, uid, groups)\n", "    return False\n"),
    ),
    Claim(
        1,
        "the set-up of level B has root run only what root made and nobody else can change",
        (_LEVEL_B + "test_what_root_runs_is_a_file_that_root_made_and_nobody_else_can_change",),
        Guard("src/surehand/cli/separating.py", "return _is_kept(path) and path", "return path.is_file() and path"),
    ),
    Claim(
        1,
        "the set-up of level B gives no role two users and makes nobody root",
        (_LEVEL_B + "test_what_would_not_be_level_b_is_refused",),
        Guard(
            "src/surehand/cli/separating.py",
            "    if 0 in (uids[name] for name in (plan.daemon, *plan.agents)):\n",
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "a change voids the yes that was given before it",
        (_APPROVALS + "test_a_change_voids_the_yes_and_shows_what_differs",),
        Guard(_RUNTIME + "approvals.py", "        for one in old:\n", "        for one in ():\n"),
    ),
    Claim(
        1,
        "a restart takes up no yes that is not on record",
        (_APPROVALS + "test_a_yes_that_is_not_on_record_is_not_taken_up_again",),
        Guard(_RUNTIME + "approvals.py", "if is_recorded(answer, since) and self", "if self"),
    ),
    Claim(
        1,
        "a restart brings back no question that was used or denied",
        (_APPROVALS + "test_what_ended_before_a_restart_is_not_brought_back_by_what_was_kept",),
        Guard(_CORE + "approvers.py", "    return None if over else since\n", "    return since\n"),
    ),
    Claim(
        1,
        "what was changed beside the journal asks and answers nothing",
        (_APPROVALS + "test_what_was_changed_beside_the_journal_counts_for_nothing",),
        Guard(_CORE + "approvers.py", "    if not places:\n        return None\n", "    places = places or [0]\n"),
    ),
    Claim(
        1,
        "an approver whose key was taken away approves nothing more",
        (_APPROVALS + "test_a_yes_of_a_key_that_was_taken_away_counts_no_more",),
        Guard(
            _CORE + "approvers.py",
            "        return tuple(one for one in self._known if not self._revoked(one))\n",
            "        return self._known\n",
        ),
    ),
    Claim(
        1,
        "where several people must agree each counts once",
        (_APPROVALS + "test_of_two_people_one_is_not_enough_and_nobody_counts_twice",),
        Guard(_CORE + "approval.py", "    if len(yes) >= pending.needed:\n", "    if yes:\n"),
    ),
    Claim(
        1,
        "leave that is given with a yes says no more than was shown",
        (_APPROVALS + "test_leave_that_says_more_than_was_shown_is_no_leave_and_no_yes",),
        Guard(_CORE + "standing.py", "        if not holds:\n", "        if False:\n"),
    ),
    Claim(
        1,
        "leave is given with an approver's signature only",
        (_APPROVALS + "test_leave_is_given_by_a_signature_only",),
        Guard(
            _CORE + "approvers.py",
            "                if verify(public, standing_message(grant), rules.signature_bytes(signature)):\n",
            "                if True:\n",
        ),
    ),
    Claim(
        4,
        "what nobody answered while the daemon was down is recorded as unanswered",
        (_APPROVALS + "test_a_question_that_ran_out_while_the_daemon_was_down_is_recorded_as_unanswered",),
        Guard(
            _RUNTIME + "approvals.py",
            '            if state == "unanswered":\n                await self._end(question, state)\n',
            "",
        ),
    ),
    Claim(
        1,
        "a key that was pressed before a question was shown answers nothing",
        (_ANSWERING + "test_a_key_pressed_before_a_question_was_shown_answers_nothing",),
        Guard("src/surehand/cli/watching.py", "        termios.tcflush(sys.stdin, termios.TCIFLUSH)\n", ""),
    ),
    Claim(
        1,
        "without a terminal nothing is answered",
        (_ANSWERING + "test_without_a_terminal_it_shows_and_answers_nothing",),
        Guard(
            "src/surehand/cli/watching.py",
            "        self._answers = sys.stdin.isatty() and sys.stdout.isatty()\n",
            "        self._answers = True\n",
        ),
    ),
    Claim(
        7,
        "a webhook is told nothing of a screen unless the operator asks for it",
        (_HERALDS + "test_a_web_server_hears_of_a_question_and_its_end_signed_and_without_the_screen",),
        Guard("src/surehand/adapters/webhook.py", "        if not self._content:\n", "        if False:\n"),
    ),
    Claim(
        7,
        "notices go over TLS or stay on this machine",
        (_HERALDS + "test_notices_go_over_tls_or_stay_on_this_machine",),
        Guard("src/surehand/adapters/webhook.py", "    if not secure or not host", "    if not host"),
    ),
    Claim(
        1,
        "a policy engine that fails denies",
        (_POLICIES + "test_an_engine_that_fails_denies_with_the_kind_of_failure",),
        Guard(
            _RUNTIME + "policies.py",
            "            return failed(failure, ruling.revision, decision_id)\n",
            "            return decide(ruling.policy, document, decision_id)\n",
        ),
    ),
    Claim(
        1,
        "what a policy engine says too late does not count",
        (_POLICIES + "test_what_an_engine_says_too_late_does_not_count",),
        Guard(
            _RUNTIME + "policies.py",
            "        if self._clock.monotonic_ms() - started_ms > ruling.choice.timeout_ms:\n",
            "        if False:\n",
        ),
    ),
    Claim(
        1,
        "a policy engine that never answers holds nobody",
        (_POLICIES + "test_an_engine_that_never_answers_denies_when_its_time_is_over",),
        Guard(
            _RUNTIME + "policies.py",
            "            async with asyncio.timeout(ruling.choice.timeout_ms / 1000):\n",
            "            async with asyncio.timeout(30):\n",
        ),
    ),
    Claim(
        1,
        "what a policy leaves undefined is denied",
        (_ANSWERS + "test_an_answer_that_is_none_is_a_deny_of_its_kind",),
        Guard(
            _CORE + "policy/engine.py",
            '        raise EngineFailure("undefined")\n',
            '        return EngineAnswer(outcome="default")\n',
        ),
    ),
    Claim(
        1,
        "an answer of a policy engine that is none is denied",
        (_ANSWERS + "test_an_answer_that_is_none_is_a_deny_of_its_kind",),
        Guard(
            _CORE + "policy/engine.py",
            '        raise EngineFailure("malformed", error.message) from error\n',
            '        return EngineAnswer(outcome="default")\n',
        ),
    ),
    Claim(
        1,
        "an obligation that nobody knows is denied as such",
        (_ANSWERS + "test_an_answer_that_is_none_is_a_deny_of_its_kind",),
        Guard(_CORE + "policy/engine.py", "        if unknown:\n", "        if False:\n"),
    ),
    Claim(
        1,
        "a policy's question above its bound is denied",
        (
            _ANSWERS + "test_a_question_that_is_too_large_is_not_put",
            _IN_PROCESS + "test_a_question_above_the_bound_is_not_put",
        ),
        Guard(
            _CORE + "policy/engine.py",
            "    if len(data) > limits.POLICY_QUESTION_BYTES_MAX:\n",
            "    if False:\n",
        ),
    ),
    Claim(
        6,
        "the stricter of a policy engine's two answers stands",
        (_ANSWERS + "test_the_stricter_of_both_answers_stands",),
        Guard(
            _CORE + "policy/engine.py",
            "    return stricter(verdict_of(standing_of(matching, present, covered), approved=document.approved), blind)\n",
            "    return verdict_of(standing_of(matching, present, covered), approved=document.approved)\n",
        ),
    ),
    Claim(
        6,
        "what a policy engine covers only because of the screen is not covered",
        (_ANSWERS + "test_what_an_answer_covers_only_because_of_the_screen_is_not_covered",),
        Guard(
            _CORE + "policy/engine.py",
            "    covered = covered_by(spoken)\n",
            "    covered = covered_by([*spoken, *_as_rule(answers[-1])])\n",
        ),
    ),
    Claim(
        6,
        "what a policy rule covers only because of the screen is not covered",
        (_ANSWERS + "test_what_a_rule_covers_only_because_of_the_screen_is_not_covered",),
        Guard(
            _CORE + "policy/evaluate.py",
            "        standing = standing_of(matching_of(candidates, present, document.facts.observed), present, covered)\n",
            "        covered = covered_by(matching_of(candidates, present, document.facts.observed))\n"
            "        standing = standing_of(matching_of(candidates, present, document.facts.observed), present, covered)\n",
        ),
    ),
    Claim(
        1,
        "a policy engine that allows everything opens no closed place",
        (_ANSWERS + "test_an_engine_that_allows_everything_opens_no_place_that_is_closed",),
        Guard(
            _CORE + "policy/engine.py",
            "    matching = [*spoken, *matching_of(candidates, proven, {})]\n",
            "    matching = [*spoken]\n",
        ),
    ),
    Claim(
        1,
        "a policy that cannot be read again changes nothing",
        (_POLICIES + "test_a_changed_policy_holds_within_a_second_and_a_broken_one_changes_nothing",),
        Guard(
            _RUNTIME + "policies.py",
            "            return msgspec.structs.replace(before, choice=choice, signature=signature), why\n",
            "            raise\n",
        ),
    ),
    Claim(
        1,
        "a policy that others may write is not taken",
        (_POLICIES + "test_a_policy_that_is_deleted_or_that_others_may_write_changes_nothing",),
        Guard(_RUNTIME + "policy_source.py", "            check_operator_owned(one)\n", "            pass\n"),
    ),
    Claim(
        1,
        "a policy that is only tried opens nothing",
        (_POLICIES + "test_a_policy_that_is_tried_and_allows_everything_opens_nothing",),
        Guard(
            _RUNTIME + "policies.py",
            "            self.shadow.offer(document, decision)\n",
            "            return await self.ask(self.shadow.ruling, document, decision_id)\n",
        ),
    ),
    Claim(
        1,
        "an answer of a policy server that was cut off is none",
        (_OPA + "test_what_is_no_answer_is_a_failure_of_its_kind",),
        Guard("src/surehand/adapters/policy_opa/wire.py", "    if answer.length:\n", "    if False:\n"),
    ),
    Claim(
        1,
        "a policy server that sends slowly for ever is late",
        (_OPA + "test_a_server_that_sends_a_byte_at_a_time_is_late_and_holds_nobody",),
        Guard(
            "src/surehand/adapters/policy_opa/engine.py",
            "            async with asyncio.timeout(self._timeout_s):\n                return await asyncio.shield(work)\n",
            "            return await asyncio.shield(work)\n",
        ),
    ),
    Claim(
        7,
        "questions to a policy server go in the clear to this machine only",
        (_OPA + "test_addresses_that_would_tell_strangers_or_mean_something_else_are_refused",),
        Guard(
            "src/surehand/adapters/policy_opa/engine.py",
            "        if not _is_loopback(parts.hostname):\n",
            "        if False:\n",
        ),
    ),
    Claim(
        1,
        "a policy rule about a quote or a backslash matches in Rego as well",
        (_IN_PROCESS + "test_texts_with_quotes_reach_a_rego_policy_and_come_back",),
        Guard("src/surehand/adapters/policy_rego.py", "set_input(_swapped(question))\n", "set_input(question)\n"),
    ),
    Claim(
        1,
        "a Cedar policy that errs denies",
        (_IN_PROCESS + "test_a_cedar_policy_that_errs_denies_though_cedar_would_pass_it_by",),
        Guard("src/surehand/adapters/policy_cedar.py", "        if found.diagnostics.errors:\n", "        if False:\n"),
    ),
    Claim(
        1,
        "what a policy decided is decided afresh where another one is in force before the claim",
        (
            _RACES + "test_a_reload_between_decision_and_claim_is_decided_afresh_and_a_no_holds",
            _RACES + "test_a_yes_is_no_yes_under_a_policy_that_came_since_and_wants_two",
        ),
        Guard(
            _RUNTIME + "gateway.py",
            "        while self.authority.is_old(run.decision):\n",
            "        while False:\n",
        ),
    ),
    Claim(
        1,
        "nothing is dispatched under a policy that was replaced after the claim",
        (_RACES + "test_a_reload_between_claim_and_dispatch_releases_the_claim",),
        Guard(_RUNTIME + "gateway.py", "        self.authority.check_current(run.decision)\n", ""),
    ),
    Claim(
        6,
        "no mode answers what is consequential in a person's place",
        (
            _MODES + "test_what_is_not_harmless_is_asked_about_in_risk_auto",
            _MODES + "test_full_access_answers_all_but_what_is_consequential",
        ),
        Guard(
            _CORE + "review.py",
            "    if categories & CONSEQUENTIAL or categories & (PLACES - _SHARED):\n",
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "an answer of a mode that was lowered since is not used",
        (_MODES + "test_a_mode_that_was_lowered_before_the_claim_takes_its_answer_with_it",),
        Guard(
            _RUNTIME + "reviews.py",
            '        if run.reviewed and self.mode not in ("risk-auto", "full-access"):\n',
            "        if False:\n",
        ),
    ),
    Claim(
        6,
        "an evaluator's answer counts only in its exact form, as low and allow",
        (_MODES + "test_an_evaluator_that_says_anything_but_low_and_allow_leaves_it_to_a_person",),
        Guard(
            _CORE + "review.py",
            '        return self.risk_level == "low" and self.recommended_decision == "allow"\n',
            "        return True\n",
        ),
    ),
    Claim(
        1,
        "an answer of which anything changed after it was signed is none",
        ("tests/unit/core/test_approval.py::TestAnswers::test_an_answer_changed_after_signing_is_refused",),
        Guard(
            _CORE + "approval.py",
            "        or not verify(bytes.fromhex(approver.public_key), answer_message(answer), signature_bytes(answer.signature))\n",
            "",
        ),
    ),
    Claim(
        1,
        "what an approver reads holds nothing that acts without showing",
        (
            "tests/unit/core/test_approval.py::TestWhatIsSeen::test_nothing_acts_without_showing_and_a_look_alike_stays_apart",
        ),
        Guard(
            _CORE + "approval.py",
            '    if category in _UNSEEN or character in _BLANK or (category == "Zs" and character != " "):\n',
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "policy is asked again after a yes, and may still say no",
        (_GATEWAY + "test_a_no_that_policy_says_only_after_the_yes_holds",),
        Guard(
            _RUNTIME + "gateway.py",
            "            decision = await self._decide(run, approved=True)\n",
            '            decision = msgspec.structs.replace(decision, outcome="allow")\n',
        ),
    ),
    Claim(
        1,
        "a permit that was not minted here, or of which one bit changed, is none",
        (
            _PERMIT + "test_one_flipped_bit_of_the_mac_is_refused",
            _PERMIT + "test_a_permit_of_another_key_is_refused",
        ),
        Guard(_CORE + "permit.py", "    if not hmac.compare_digest(mac, permit.mac):\n", "    if False:\n"),
    ),
    Claim(
        1,
        "a permit is for one request, decision, set of obligations and session",
        (_PERMIT + "test_a_permit_for_something_else_is_refused",),
        Guard(
            _CORE + "permit.py",
            "    if (permit.request_hash, permit.decision_id, permit.obligations_hash, permit.session) != expected:\n",
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "a permit lives thirty seconds and not a millisecond more",
        (_PERMIT + "test_a_fresh_permit_holds_for_thirty_seconds_and_not_one_millisecond_more",),
        Guard(_CORE + "permit.py", "    if not 0 < left_ms <= limits.PERMIT_MS:\n", "    if False:\n"),
    ),
    Claim(
        1,
        "a policy that is configured against itself stops the start",
        ("tests/unit/policy/test_policies.py::test_a_configuration_that_names_no_policy_it_could_mean_is_refused",),
        Guard(
            _RUNTIME + "config.py",
            '        if self.engine == "opa" and self.file is not None:\n',
            "        if False:\n",
        ),
    ),
    Claim(
        7,
        "output that must be asked about is withheld whole where nobody agreed",
        ("tests/unit/core/test_release.py::test_output_that_must_be_asked_about_is_withheld_whole",),
        Guard(_CORE + "release.py", '    if obligations.release == "ask" and not agreed:\n', "    if False:\n"),
    ),
    Claim(
        7,
        "output that must be asked about leaves only by a yes to a question that said so",
        (
            _WITHHELD + "test_output_leaves_once_a_person_said_yes_to_a_question_that_says_so",
            _WITHHELD + "test_a_yes_to_a_question_that_did_not_say_so_gives_nothing_out",
        ),
        Guard(
            _RUNTIME + "approvals.py",
            'run.output_agreed = decision.obligations.release == "ask" and',
            "run.output_agreed =",
        ),
    ),
    Claim(
        6,
        "an evaluator's program is told nothing of the daemon but the question",
        (_EVALUATOR + "test_the_question_comes_on_its_input_and_nothing_else_of_the_daemon",),
        Guard("src/surehand/adapters/evaluator_program.py", "                env=_ENVIRONMENT,\n", ""),
    ),
    Claim(
        6,
        "an evaluator that fails, does not end or says too much answers nothing",
        (
            _EVALUATOR + "test_only_a_program_that_ends_well_and_says_low_and_allow_answers",
            _EVALUATOR + "test_an_answer_is_read_up_to_its_bound_and_no_further",
        ),
        Guard(
            "src/surehand/adapters/evaluator_program.py",
            '        if code != 0:\n            raise Unavailable(f"the evaluator ended with status {code}")\n',
            "",
        ),
    ),
    Claim(
        1,
        "a client's word answers nothing unless the operator named the client and its user, and nothing at level B",
        (
            _ASSERTED
            + "test_a_client_that_the_operator_did_not_name_for_this_user_is_given_nothing_and_its_word_is_refused",
            _ASSERTED + "test_at_level_b_no_clients_word_counts",
        ),
        Guard(
            _RUNTIME + "asserted.py",
            '    if session.trust_level != "A" or not parts.config.may_assert(session.principal, args.client):\n',
            "    if False:\n",
        ),
    ),
    Claim(
        1,
        "a client's word never answers what is consequential, in a sensitive place, secret, or for several people",
        (
            _ASSERTED + "test_what_is_consequential_is_not_for_a_client",
            _ASSERTED + "test_what_takes_two_people_is_not_for_a_client",
        ),
        Guard(
            _RUNTIME + "asserted.py",
            "    if reason := rules.why_not(question.pending):\n",
            '    if reason := "":\n',
        ),
    ),
    Claim(
        1,
        "a client's word counts only for a question of its own session",
        (_ASSERTED + "test_a_question_of_another_session_is_not_answered_and_not_shown",),
        Guard(_RUNTIME + "asserted.py", "    if args.approval_id not in session.asked:\n", "    if False:\n"),
    ),
    Claim(
        1,
        "a client's word counts only for exactly the words it was given",
        (_ASSERTED + "test_a_word_about_something_else_does_not_count_and_leaves_the_question_open",),
        Guard(
            _CORE + "asserted.py",
            "    if not hmac.compare_digest(presentation_hash.encode(), pending.presentation_hash.encode()):\n",
            "    if False:\n",
        ),
    ),
    Claim(
        5,
        "a client's word changes nothing about what a person answered",
        (_ASSERTED + "test_what_a_person_answered_meanwhile_stands",),
        Guard(_RUNTIME + "asserted.py", "    if question.given or question.answers:\n", "    if False:\n"),
    ),
)
