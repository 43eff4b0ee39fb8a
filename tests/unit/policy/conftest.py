"""One OPA server for all tests of this folder; the report says what it is."""

from __future__ import annotations

import pytest

from tests import policy_engines


@pytest.fixture(scope="session")
def opa():
    if policy_engines.opa_program() is None:
        pytest.skip("no opa on PATH, and no Go that could build it")
    with policy_engines.opa_server() as running:
        yield running


def pytest_terminal_summary(terminalreporter) -> None:
    """Say what decided in the tests of OPA."""
    if policy_engines.opa_program.cache_info().currsize:
        program = policy_engines.opa_program() or "there is none, and its tests were skipped"
        what = "OPA's server" if policy_engines.is_opa_server() else "OPA's engine behind a server of the tests"
        terminalreporter.write_line(f"policy: {what}: {program}")
