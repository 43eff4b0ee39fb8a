"""One OPA server for all tests of this folder; the report says which program it is."""

from __future__ import annotations

import pytest

from tests import policy_engines


@pytest.fixture(scope="session")
def opa():
    if policy_engines.opa_program() is None:
        pytest.skip("no opa on PATH, and no Go that could build it")
    with policy_engines.opa_server() as running:
        yield running
