"""The vault's file: what is changed, exchanged or half written opens nothing, and what is enrolled at once is all kept."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.adapters.secrets_vault import VaultFile
from surehand.errors import AuthorityDenied, Conflict, InvalidRequest, PermissionMissing, SurehandError, Unavailable
from surehand.model.secrets import SecretBinding, SecretField, VaultPassphrase
from tests.secrets_kit import CANARY, found_in

ROOT = Path(__file__).parents[2]
BINDING = SecretBinding(apps=("exe:/opt/app",))


@pytest.fixture
def vault(tmp_path: Path) -> VaultFile:
    tmp_path.chmod(0o700)
    return VaultFile(tmp_path / "secrets.vault", tmp_path / "keys" / "vault.key")


@pytest.fixture
def key(vault: VaultFile) -> bytearray:
    key = vault.key_in_file(create=True)
    vault.create(key, vault.new_head("file"))
    return key


def put(vault: VaultFile, key: bytearray, name: str = "mail", value: str = CANARY, **bound_to: Any) -> Any:
    binding = SecretBinding(**bound_to) if bound_to else BINDING
    return vault.put(key, name, binding, bytearray(value, "utf-8"), 1)


def file_of(vault: VaultFile) -> Path:
    return vault._path


def test_a_secret_comes_out_as_it_went_in_and_is_in_the_file_in_no_form(vault, key):
    opened = put(vault, key)
    assert vault.reveal(key, "mail", opened.seal) == bytearray(CANARY, "utf-8")
    data = file_of(vault).read_bytes()
    assert not found_in(data)
    assert stat.S_IMODE(file_of(vault).stat().st_mode) == 0o600


def test_the_file_does_not_tell_how_long_a_secret_is(vault, key):
    sizes = set()
    for length in (1, 2, 30, limits.SECRET_PAD_BYTES - 2):
        put(vault, key, value="x" * length)
        sizes.add(len(json.loads(file_of(vault).read_text())["secrets"][0]["sealed"]))
    assert len(sizes) == 1
    put(vault, key, value="x" * (limits.SECRET_PAD_BYTES - 1))
    assert len(json.loads(file_of(vault).read_text())["secrets"][0]["sealed"]) not in sizes


def test_any_changed_byte_opens_nothing(vault, key):
    opened = put(vault, key)
    whole = file_of(vault).read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        file_of(vault).write_bytes(changed)
        with pytest.raises(SurehandError) as refused:
            vault.open(key)
        assert refused.value.code in {"authority_denied", "invalid_request", "too_large"}
        with pytest.raises(SurehandError):
            put(vault, key, "more")
    file_of(vault).write_bytes(whole)
    assert vault.open(key) == opened


@pytest.mark.parametrize("change", ["moved", "rebound", "removed", "added", "generation", "cut", "key", "vault"])
def test_what_somebody_rearranged_opens_nothing(vault, key, change):
    put(vault, key, "bank")
    put(vault, key, "mail", apps=("exe:/opt/evil",))
    value = json.loads(file_of(vault).read_text())
    bank, mail = value["secrets"]
    if change == "moved":
        bank["sealed"], mail["sealed"] = mail["sealed"], bank["sealed"]
    elif change == "rebound":
        bank["bound_to"] = mail["bound_to"]
    elif change == "removed":
        del value["secrets"][0]
    elif change == "added":
        value["secrets"].append({**bank, "name": "zoo"})
    elif change == "generation":
        value["generation"] += 1
    elif change == "key":
        value["key"] = "keyring"
    elif change == "vault":
        value["vault_id"] = "0" * 32
    text = json.dumps(value)
    file_of(vault).write_text(text[:-20] if change == "cut" else text)
    with pytest.raises(AuthorityDenied) as refused:
        vault.open(key)
    assert refused.value.details == {"reason": "vault_changed"}


def test_a_seal_that_stands_under_another_name_opens_nothing_even_in_a_whole_that_is_sealed(vault, key):
    """Whoever has the key for the whole still cannot give one application the secret of another by its seal alone."""
    import msgspec

    put(vault, key, "bank")
    opened = put(vault, key, "mail", apps=("exe:/opt/evil",))
    file = vault._proven(key)
    bank, mail = file.secrets
    swapped = (bank, msgspec.structs.replace(mail, sealed=bank.sealed))
    file = vault._sealed_whole(key, msgspec.structs.replace(file, secrets=swapped))
    from surehand import canonical

    file_of(vault).write_bytes(canonical.encode_record(file))
    assert vault.open(key).secrets == opened.secrets
    with pytest.raises(AuthorityDenied):
        vault.reveal(key, "mail", file.seal)


def test_a_secret_is_read_from_exactly_the_content_that_was_looked_at(vault, key):
    seen = put(vault, key)
    put(vault, key, value="another")
    with pytest.raises(AuthorityDenied):
        vault.reveal(key, "mail", seen.seal)


def test_another_key_opens_nothing(vault, key):
    put(vault, key)
    with pytest.raises(AuthorityDenied):
        vault.open(bytearray(32))
    with pytest.raises(AuthorityDenied):
        vault.open(vault.new_key())


def test_a_file_that_others_may_open_is_refused(vault, key, tmp_path):
    for path in (file_of(vault), tmp_path / "keys" / "vault.key"):
        path.chmod(0o640)
        with pytest.raises(PermissionMissing):
            vault.open(vault.key_in_file())
        path.chmod(0o600)
    link = tmp_path / "link"
    file_of(vault).rename(link)
    file_of(vault).symlink_to(link)
    with pytest.raises(PermissionMissing):
        vault.open(key)


def test_a_key_file_that_is_gone_or_broken_is_not_made_anew_unasked(vault, key, tmp_path):
    put(vault, key)
    path = tmp_path / "keys" / "vault.key"
    for content in (b"", b"zz", b"ab" * 31, b"ab" * 33):
        path.write_bytes(content)
        with pytest.raises(Unavailable) as refused:
            vault.key_in_file()
        assert refused.value.details == {"reason": "no_key"}
    path.unlink()
    with pytest.raises(Unavailable):
        vault.key_in_file()
    assert not path.exists()


def test_a_passphrase_opens_what_it_sealed_and_another_one_does_not(vault, monkeypatch):
    monkeypatch.setattr(limits, "PASSPHRASE_OPS", 1)
    monkeypatch.setattr(limits, "PASSPHRASE_MEMORY_BYTES", 16 * 1024)
    head = vault.new_head("passphrase")
    key = vault.key_of_passphrase(head, bytearray(b"right"))
    vault.create(key, head)
    put(vault, key)
    again = vault.head()
    assert vault.open(vault.key_of_passphrase(again, bytearray(b"right"))).secrets
    with pytest.raises(AuthorityDenied):
        vault.open(vault.key_of_passphrase(again, bytearray(b"wrong")))
    for passphrase in (b"", b"x" * (limits.PASSPHRASE_BYTES_MAX + 1)):
        with pytest.raises(InvalidRequest):
            vault.key_of_passphrase(head, bytearray(passphrase))
    assert vault.key_of_passphrase(head, bytearray(b"x" * limits.PASSPHRASE_BYTES_MAX))
    with pytest.raises(InvalidRequest):
        vault.key_of_passphrase(vault.new_head("file"), bytearray(b"x"))


def test_a_vault_that_asks_for_too_much_work_is_refused():
    VaultPassphrase(ops=limits.PASSPHRASE_OPS_MAX, memory_bytes=limits.PASSPHRASE_MEMORY_BYTES_MAX, salt="")
    for ops, memory in (
        (limits.PASSPHRASE_OPS_MAX + 1, limits.PASSPHRASE_MEMORY_BYTES_MAX),
        (1, limits.PASSPHRASE_MEMORY_BYTES_MAX + 1),
        (0, limits.PASSPHRASE_MEMORY_BYTES_MAX),
    ):
        with pytest.raises(InvalidRequest):
            VaultPassphrase(ops=ops, memory_bytes=memory, salt="")


def test_a_vault_holds_so_many_and_no_more(vault, key, monkeypatch):
    monkeypatch.setattr(limits, "SECRETS_MAX", 3)
    for number in range(3):
        put(vault, key, f"s{number}")
    with pytest.raises(InvalidRequest, match="holds 3"):
        put(vault, key, "s3")
    put(vault, key, "s2", value="in its place")
    assert len(vault.open(key).secrets) == 3
    with pytest.raises(InvalidRequest):
        vault.remove(key, "s3")
    assert set(vault.remove(key, "s0").secrets) == {"s1", "s2"}


def test_the_fullest_vault_that_the_bounds_allow_is_written_and_read(vault, key):
    many = range(limits.SECRET_BINDINGS_MAX)
    wide = limits.SECRET_BINDING_BYTES_MAX
    binding = SecretBinding(
        apps=tuple(f"exe:/{number}".ljust(wide, "x") for number in many),
        origins=tuple("https://" + f"h{number}".ljust(wide - len("https://"), "x") for number in many),
        fields=tuple(SecretField(role="r" * wide, name=f"{number}".ljust(wide, "n")) for number in many),
    )
    file = vault._proven(key)
    import msgspec

    from surehand import canonical
    from surehand.adapters.secrets_vault import _Sealed

    sealed = "f" * 2 * (32 + limits.SECRET_BYTES_MAX + limits.SECRET_PAD_BYTES + 16)
    secrets = tuple(
        _Sealed(
            name=f"{number:03}".ljust(limits.SECRET_NAME_CHARS_MAX, "n"),
            bound_to=binding,
            changed_at_ms=2**53 - 1,
            sealed=sealed,
        )
        for number in range(limits.SECRETS_MAX)
    )
    data = canonical.encode_record(vault._sealed_whole(key, msgspec.structs.replace(file, secrets=secrets)))
    assert len(data) <= limits.VAULT_BYTES_MAX
    file_of(vault).write_bytes(data)
    assert len(vault.open(key).secrets) == limits.SECRETS_MAX
    file_of(vault).write_bytes(data.ljust(limits.VAULT_BYTES_MAX))
    vault.open(key)
    file_of(vault).write_bytes(data.ljust(limits.VAULT_BYTES_MAX + 1))
    with pytest.raises(SurehandError, match="too_large"):
        vault.open(key)


def test_a_vault_is_not_made_over_another_one_unasked(vault, key):
    put(vault, key)
    with pytest.raises(Conflict):
        vault.create(key, vault.new_head("file"))
    assert vault.open(key).secrets
    assert not vault.create(key, vault.new_head("file"), replace=True).secrets


#: Enrols ten secrets.
_TEN = """
import sys
from pathlib import Path
from tests.unit.test_secrets_vault import VaultFile, put
folder, first = Path(sys.argv[1]), int(sys.argv[2])
vault = VaultFile(folder / "secrets.vault", folder / "keys" / "vault.key")
key = vault.key_in_file()
for number in range(first, first + 10):
    put(vault, key, f"s{number}")
"""


def test_processes_that_enrol_at_once_lose_nothing(vault, key, tmp_path):
    workers = [
        subprocess.Popen([sys.executable, "-c", _TEN, str(tmp_path), str(first)], cwd=ROOT) for first in (0, 10, 20)
    ]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    opened = vault.open(key)
    assert set(opened.secrets) == {f"s{number}" for number in range(30)}
    assert opened.generation == 31


def test_a_lock_that_is_not_given_back_is_waited_for_with_a_bound(vault, key, tmp_path, monkeypatch):
    import fcntl

    put(vault, key)
    monkeypatch.setattr(limits, "VAULT_BUSY_MS_MAX", 30)
    with (tmp_path / "secrets.vault.lock").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="another process"):
            put(vault, key, "more")
    put(vault, key, "more")


#: Enrols for ever, and says when it has begun.
_FOREVER = """
import sys
from pathlib import Path
from tests.unit.test_secrets_vault import VaultFile, put
folder = Path(sys.argv[1])
vault = VaultFile(folder / "secrets.vault", folder / "keys" / "vault.key")
key = vault.key_in_file()
print("begun", flush=True)
number = 0
while True:
    number += 1
    put(vault, key, f"s{number % 8}", value=f"{number:05}")
    print(number, flush=True)
"""


def test_a_process_that_is_killed_while_it_enrols_leaves_a_vault_that_opens(vault, key, tmp_path):
    rounds = 40 if os.environ.get("SUREHAND_LONG") == "1" else 4
    for round_ in range(rounds):
        with subprocess.Popen(
            [sys.executable, "-c", _FOREVER, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            for _ in range(round_ + 1):
                last = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            told = [int(line) for line in process.stdout.read().split()]
        opened = vault.open(key)
        newest = max(int(vault.reveal(key, name, opened.seal)) for name in opened.secrets)
        # What was said to be enrolled is; the next one may be as well.
        assert newest >= max([last, *told])
    put(vault, key, "after")
    assert [path.name for path in tmp_path.glob(".secrets.vault.*")] == []


def test_what_is_no_draft_beside_a_vault_is_in_nobodys_way(vault, key, tmp_path):
    (tmp_path / ".secrets.vault.folder").mkdir()
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / ".secrets.vault.link").symlink_to(precious)
    assert "more" in vault.put(key, "more", BINDING, bytearray(b"x"), 1).secrets
    assert precious.read_text() == "kept"
