"""The auditor as a program: its sources, its exit codes, its memory, and that it stands alone."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import pty
import select
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand.core import chain
from surehand.verify import audit as module
from surehand.verify.audit import audit
from surehand.verify.records import Fault, Record, check_record, encode, read_canonical, record_hash
from surehand.verify.sources import NotReadable
from surehand.verify.spill import Spill
from tests.journal_kit import auditor, claim, filled, note, open_journal, tamper, terminal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    return filled(tmp_path / "state" / "journal.db")


@pytest.fixture
def export(path, tmp_path):
    target = tmp_path / "export.jsonl"
    target.write_bytes(b"".join(lines_of(path)))
    return target


def lines_of(path) -> list[bytes]:
    journal = open_journal(path)
    events = asyncio.run(journal.read())
    asyncio.run(journal.close())
    return [chain.export_line(event) for event in events]


# --- it stands alone ----------------------------------------------------------------------------------------------------


def test_it_imports_the_standard_library_a_crypto_library_and_itself_only():
    for source in (ROOT / "src" / "surehand" / "verify").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                ours = name.startswith("surehand.verify") or (source.name, top) == ("proofs.py", "cryptography")
                assert top in sys.stdlib_module_names or ours, f"{source.name}: {name}"


def test_it_runs_where_nothing_else_of_the_project_or_its_dependencies_is(path, tmp_path):
    alone = tmp_path / "alone" / "surehand"
    alone.mkdir(parents=True)
    (alone / "__init__.py").touch()
    shutil.copytree(ROOT / "src" / "surehand" / "verify", alone / "verify")
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(alone.parent)!r}); from surehand.verify.command import main; sys.exit(main([{str(path)!r}]))",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("OK:")


# --- verdicts -----------------------------------------------------------------------------------------------------------


def test_a_whole_journal_is_found_whole_and_counted(path):
    verdict = audit(path)
    assert verdict.ok
    assert verdict.events == 8
    assert verdict.counts._asdict() == {"streams": 4, "claims": 3, "terminals": 3, "unended": 0}
    assert "immutable" in verdict.source


def test_an_empty_journal_is_whole(tmp_path):
    path = tmp_path / "state" / "journal.db"
    asyncio.run(open_journal(path).close())
    verdict = audit(path)
    assert (verdict.ok, verdict.events, verdict.head) == (True, 0, "0" * 64)


def test_a_claim_without_an_end_is_counted_and_no_fault(tmp_path):
    path = tmp_path / "state" / "journal.db"

    async def run():
        journal = open_journal(path)
        await journal.append([claim("a"), claim("b"), terminal("b")])
        await journal.close()

    asyncio.run(run())
    verdict = audit(path)
    assert (verdict.ok, verdict.counts.unended) == (True, 1)


def test_an_open_claim_that_a_refusal_follows_is_whole_and_open(tmp_path):
    path = tmp_path / "state" / "journal.db"
    refusal = note("operation:agent:a", "operation.refused.v1", code="conflict")

    async def run():
        journal = open_journal(path)
        await journal.append([claim("a"), refusal])
        await journal.close()

    asyncio.run(run())
    verdict = audit(path)
    assert (verdict.ok, verdict.counts.unended) == (True, 1)
    journal = open_journal(path, mode="full")
    assert journal.recovery is None
    asyncio.run(journal.close())
    tamper(path, "UPDATE streams SET type = 'operation.refused.v1'")
    assert "table of streams" in audit(path).reason
    assert open_journal(path, mode="full").recovery is not None


def test_a_released_operation_may_be_claimed_again(tmp_path):
    path = tmp_path / "state" / "journal.db"
    release = note("operation:agent:a", "operation.released.v1", code="stale_target")

    async def run():
        journal = open_journal(path)
        for event in (
            claim("a"),
            release,
            claim("a"),
            terminal("a"),
            note("operation:agent:a", "operation.resolved.v1", verdict="happened"),
            note("operation:agent:a", "operation.refused.v1", code="conflict"),
        ):
            await journal.append([event])
        await journal.close()

    asyncio.run(run())
    assert audit(path).ok


# --- the program ----------------------------------------------------------------------------------------------------------


def test_exit_codes_and_texts(path, export, tmp_path):
    whole = auditor(path)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout.startswith("OK:")
    assert auditor(export).returncode == 0
    tamper(path, "UPDATE events SET actor = 'x' WHERE seq = 3")
    tampered = auditor(path)
    assert tampered.returncode == 1
    assert "event 3 of stream operation:agent:op-0: the record hash does not match" in tampered.stdout
    for wrong in (tmp_path / "none", tmp_path, __file__):
        asked = auditor(wrong)
        assert (asked.returncode, asked.stdout) == (2, "")
        assert asked.stderr.startswith("surehand-verify: ")
    assert auditor().returncode == 2
    assert auditor("--holds", "x", path).returncode == 2


def test_json_is_one_object_whatever_was_found(path, tmp_path):
    value = json.loads(auditor("--json", path).stdout)
    assert value["ok"] is True
    assert value["counts"]["terminals"] == 3
    tamper(path, "DELETE FROM events WHERE seq = 3")
    value = json.loads(auditor("--json", path).stdout)
    assert (value["ok"], value["seq"], value["reason"]) == (False, 4, "sequence 3 is missing")
    value = json.loads(auditor("--json", tmp_path / "none").stdout)
    assert value["ok"] is None


def test_a_held_receipt_is_looked_for(path):
    head = audit(path).head
    found = auditor("--holds", f"8:{head}", path)
    assert found.returncode == 0
    assert "1 held records found" in found.stdout
    assert auditor("--holds", f"9:{head}", path).returncode == 1
    assert auditor("--holds", f"7:{head}", path).returncode == 1


def test_a_terminal_shows_progress_and_a_pipe_does_not(path, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "_PROGRESS_EVENTS", 3)
    audit(path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 8), (6, 8)]
    program = textwrap.dedent(f"""
        import surehand.verify.audit as module
        module._PROGRESS_EVENTS = 3
        from surehand.verify.command import main
        raise SystemExit(main([{str(path)!r}]))
    """)
    master, slave = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=slave, timeout=60, check=False
    )
    os.close(slave)
    shown = b""
    while select.select([master], [], [], 0.2)[0]:
        try:
            shown += os.read(master, 4096)
        except OSError:
            break
    os.close(master)
    assert done.returncode == 0
    assert b"verifying: 6 of 8 events" in shown
    assert done.stdout.startswith(b"OK:")


# --- sources --------------------------------------------------------------------------------------------------------------


def test_a_journal_in_use_is_refused_by_the_name_of_its_holder(path):
    journal = open_journal(path)
    with pytest.raises(NotReadable, match=str(os.getpid())):
        audit(path)
    asyncio.run(journal.close())
    assert audit(path).ok


def test_the_log_that_a_killed_process_left_behind_is_read_with_the_file_and_nothing_is_changed(tmp_path):
    path = tmp_path / "state" / "journal.db"
    program = textwrap.dedent(f"""
        import asyncio, os, signal
        from pathlib import Path
        from tests.journal_kit import note, open_journal

        async def main():
            journal = open_journal(Path({str(path)!r}))
            for _ in range(20):
                await journal.append([note()])
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """)
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == -9
    files = {entry: entry.read_bytes() for entry in path.parent.iterdir()}
    assert files[path.with_name("journal.db-wal")]
    verdict = audit(path)
    assert (verdict.ok, verdict.events) == (True, 20)
    assert "private copy" in verdict.source
    assert {entry: entry.read_bytes() for entry in path.parent.iterdir()} == files


def test_a_database_that_never_was_a_journal_is_a_wrong_question(tmp_path):
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t(x)")
    connection.commit()
    connection.close()
    with pytest.raises(NotReadable):
        audit(other)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00", b"[]"])
def test_a_file_that_is_neither_is_a_wrong_question(tmp_path, content):
    other = tmp_path / "other"
    other.write_bytes(content)
    with pytest.raises(NotReadable):
        audit(other)


def test_an_export_says_what_the_journal_says(path, export):
    ours, theirs = audit(path), audit(export)
    assert theirs.ok
    assert (ours.events, ours.head, ours.counts) == (theirs.events, theirs.head, theirs.counts)


def test_any_bit_of_an_export_flipped_is_found_at_its_line(export):
    pristine = export.read_bytes()
    ends = [index for index, byte in enumerate(pristine) if byte == 10]
    for offset in range(0, len(pristine), 1 if os.environ.get("SUREHAND_LONG") else 7):
        for bit in (1, 32):
            damaged = bytearray(pristine)
            damaged[offset] ^= bit
            export.write_bytes(damaged)
            try:
                verdict = audit(export)
            except NotReadable:
                assert offset == 0
                continue
            line = 1 + sum(end < offset for end in ends)
            assert not verdict.ok
            assert verdict.seq in {line, line + 1} or "sequence" in verdict.reason, (offset, verdict)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[:3] + lines[4:], "sequence 4 is missing"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "sequence 1 is missing"),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], "goes back"),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], "the last line is cut"),
        (lambda lines: [*lines[:-1], lines[-1][:-20]], "the last line is cut"),
        (lambda lines: [*lines[:3], b"\n", *lines[3:]], "not JSON"),
        (lambda lines: [*lines[:3], b"{}\n", *lines[3:]], "members of an event"),
        (lambda lines: [*lines[:3], lines[3].replace(b'"seq":4', b'"seq":"4"'), *lines[4:]], "seq is not of its kind"),
        (lambda lines: [*lines[:3], lines[3].replace(b'"seq":4', b'"seq":4.0'), *lines[4:]], "not an integer"),
        (lambda lines: [*lines[:3], lines[3].replace(b'"seq":4', b'"seq":true'), *lines[4:]], "seq is not of its kind"),
        (lambda lines: [*lines[:3], lines[3].replace(b'"seq":4', b'"seq":4,"seq":4'), *lines[4:]], "canonical form"),
        (lambda lines: [*lines[:3], b'{"x":"' + b"y" * (5 * 2**20) + b'"}\n', *lines[3:]], "longer than any event"),
        (lambda lines: [*lines[:3], b"{" * 100_000 + b"\n", *lines[3:]], "not JSON"),
    ],
)
def test_a_damaged_export_is_found_with_the_reason(export, change, reason):
    export.write_bytes(b"".join(change(export.read_bytes().splitlines(keepends=True))))
    verdict = audit(export)
    assert not verdict.ok
    assert reason in verdict.reason


# --- its own canonical form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" {}",
        b"{} ",
        b'{"a": 1}',
        b"1.0",
        b"-0",
        b"1e3",
        b"NaN",
        b"Infinity",
        b"01",
        b"9007199254740992",
        b'"\\u0041"',
        b'"\\/"',
        b'"\xff"',
        b'"\\ud800"',
        b'"\x01"',
        b'{"b":1,"a":1}',
        b'{"a":1,"a":1}',
        '{"\ue000":1}'.encode(),
        b"[" * 33 + b"]" * 33,
        b"1" * 5_000,
    ],
)
def test_what_is_not_the_one_form_is_refused(raw):
    with pytest.raises(Fault):
        read_canonical(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"[]",
        b"null",
        b"-9007199254740991",
        b'"\\u0000\\b\\"\\\\"',
        '"é\U0001f600\ue000"'.encode(),
        b"[" * 32 + b"]" * 32,
        '{"é":1}'.encode(),
    ],
)
def test_the_one_form_is_accepted(raw):
    assert encode(read_canonical(raw)) == raw


def test_a_record_of_another_version_of_the_rules_is_still_hashed_by_its_raw_bytes():
    """Members that this program does not know do not matter to the chain."""
    record = Record(
        1,
        "019a2b3c-4d5e-7000-8000-000000000000",
        "s",
        1,
        "a.b.v9",
        "2026-11-30T00:00:00.000Z",
        "x",
        b'{"new":1}',
        b'{"other":[]}',
        "0" * 64,
        "",
    )
    record = record._replace(record_hash=record_hash(record))
    assert check_record(record) == ({"new": 1}, {"other": []})


# --- memory -----------------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(min_size=4, max_size=4), max_size=400), st.integers(1, 50))
def test_a_spill_gives_everything_back_in_order(entries, run_entries):
    spill = Spill(4, run_entries=run_entries)
    for entry in entries:
        spill.add(entry)
    assert list(spill) == sorted(entries)
    spill.close()


def test_memory_does_not_grow_with_the_log(tmp_path):
    """Two exports, one ten times as long, each verified in a process of its own."""
    program = textwrap.dedent("""
        import resource, sys
        from pathlib import Path
        import surehand.verify.spill as spill
        from surehand.verify.audit import audit
        spill.Spill.__init__.__kwdefaults__["run_entries"] = 2_000
        verdict = audit(Path(sys.argv[1]))
        assert verdict.ok, verdict
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """)
    peaks = []
    for count in (2_000, 20_000):
        target = tmp_path / f"{count}.jsonl"
        head = chain.EMPTY
        with target.open("wb") as file:
            for number in range(count):
                identity = next(chain.uuids7(number, number.to_bytes(10, "big")))
                event = chain.next_event(
                    note(f"s{number}"),
                    head,
                    stream_version=1,
                    event_id=identity,
                    occurred_at="2026-11-30T00:00:00.000Z",
                )
                head = chain.Head(event.seq, event.record_hash)
                file.write(chain.export_line(event))
        done = subprocess.run(
            [sys.executable, "-c", program, str(target)], capture_output=True, text=True, timeout=60, check=True
        )
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 2_000, peaks
