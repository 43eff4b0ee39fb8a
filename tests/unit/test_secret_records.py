"""How references, bindings and origins are spelt, at their limits and one past."""

# ruff: noqa: S106 - references and made-up texts, not passwords
from __future__ import annotations

import pytest

from surehand import limits
from surehand.errors import InvalidRequest, TooLarge
from surehand.model.actions import SetValue, TypeText, secret_of
from surehand.model.secrets import SecretBinding, SecretField, check_origin, check_reference, check_secret_text

LONG = "n" * limits.SECRET_NAME_CHARS_MAX


@pytest.mark.parametrize(
    "reference", ["vault:mail", "vault:a.b_c-9", "env:GITHUB_TOKEN", f"vault:{LONG}", f"env:{LONG}"]
)
def test_a_reference_is_taken(reference):
    check_reference("secret_ref", reference)
    assert secret_of(SetValue(secret_ref=reference)) == secret_of(TypeText(secret_ref=reference)) == reference


@pytest.mark.parametrize(
    "reference",
    [
        "", "mail", "vault:", "env:", "vault:a b", "vault:.a", "vault:a/b", "vault:a\n", "env:9A", "env:A-B", "file:x", "VAULT:x",
        " vault:x", "vault:ä", f"vault:{LONG}n", f"env:{LONG}n", "hunter2", "https://x",
    ],
)  # fmt: skip
def test_anything_else_is_refused_and_not_repeated(reference):
    for action in (SetValue, TypeText):
        with pytest.raises(InvalidRequest) as refused:
            action(secret_ref=reference)
        # Somebody may have written the secret where its reference belongs.
        assert len(reference) < 7 or reference not in str(refused.value.to_value())


def test_text_and_reference_go_not_together():
    for action, text in ((SetValue, {"value": "x"}), (TypeText, {"text": "x"})):
        with pytest.raises(InvalidRequest):
            action(secret_ref="vault:mail", **text)
        with pytest.raises(InvalidRequest):
            action()
    assert secret_of(SetValue(value="vault:mail")) is None


@pytest.mark.parametrize(
    "origin",
    ["https://example.org", "https://example.org:8443", "https://a-b.c", "https://[2001:db8::1]", "http://localhost:8080",
     "http://127.0.0.1:1", "http://[::1]", "https://xn--bcher-kva.example", "https://h:65535"],
)  # fmt: skip
def test_a_canonical_origin_is_taken(origin):
    check_origin(origin)


@pytest.mark.parametrize(
    "origin",
    ["", "example.org", "https://", "https://Example.org", "https://example.org/", "https://example.org:443", "http://localhost:80",
     "http://example.org", "https://user@example.org", "https://example.org.", "https://*.example.org", "https://b\u00fccher.example",
     "ftp://example.org", "https://h:0", "https://h:65536", "https://a_b", "https://example.org\n", "null", "data:x", "https://-a"],
)  # fmt: skip
def test_what_is_no_canonical_origin_or_not_encrypted_is_refused(origin):
    with pytest.raises(InvalidRequest):
        check_origin(origin)


@pytest.mark.parametrize(
    "app", ["", "firefox", "exe:", "exe:firefox", "unproven:/x", "exe:/usr/bin/*", "*", "launch:x"]
)
def test_only_exact_proven_identities_are_bound_to(app):
    with pytest.raises(InvalidRequest):
        SecretBinding(apps=(app,))


def test_a_binding_has_so_many_parts_and_no_more():
    most = limits.SECRET_BINDINGS_MAX
    apps = tuple(f"exe:/{number}" for number in range(most + 1))
    origins = tuple(f"https://h{number}" for number in range(most + 1))
    fields = tuple(SecretField(role="text", name=f"{number}") for number in range(most + 1))
    SecretBinding(apps=apps[:most], origins=origins[:most], fields=fields[:most])
    for parts in ({"apps": ()}, {"apps": apps}, {"origins": origins}, {"fields": fields}):
        with pytest.raises((InvalidRequest, TooLarge)):
            SecretBinding(**{"apps": apps[:1], **parts})
    wide = limits.SECRET_BINDING_BYTES_MAX
    SecretBinding(apps=("exe:/".ljust(wide, "x"),))
    with pytest.raises((InvalidRequest, TooLarge)):
        SecretBinding(apps=("exe:/".ljust(wide + 1, "x"),))
    for role, name in (("", "x"), ("x", ""), ("x" * (wide + 1), "x"), ("x", "x" * (wide + 1))):
        with pytest.raises((InvalidRequest, TooLarge)):
            SecretField(role=role, name=name)


def test_a_secret_is_one_line_of_text():
    for text in ("x", " ", "\u00e9", "\U0001f511", "x" * limits.SECRET_BYTES_MAX):
        check_secret_text(text)
    for text in ("", "x" * (limits.SECRET_BYTES_MAX + 1), "a\nb", "a\tb", "\x00", "\x7f", "\x85", "\ud800"):
        with pytest.raises(InvalidRequest):
            check_secret_text(text)


def test_a_binding_is_told_whole():
    binding = SecretBinding(apps=("exe:/a",), origins=("https://h",), fields=(SecretField(role="text", name="Code"),))
    assert binding.told() == "exe:/a at https://h also into fields that show it: text 'Code'"
