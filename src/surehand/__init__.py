"""Surehand: software agents use real computers, and every effect is authorised, fenced, done at most once and honest.

    import surehand

    with surehand.open() as hand:
        hand.app("mousepad").get_by_role("text").set_value("Hello")

Importing this opens nothing, reads no environment and loads nothing else; each name below is loaded when it is first
used. Only a `Receipt` is true; `ApprovalRequired` and `Interrupted` are false; everything else is raised.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    __version__: str
    from surehand.client.async_client import AsyncHand, connect
    from surehand.client.locators import AsyncLocator
    from surehand.client.results import ApprovalRequired, BatchResult, Interrupted, Receipt
    from surehand.client.scenes import Picture, Scene, Target
    from surehand.client.sync_client import Hand, Locator, open  # noqa: A004 - `surehand.open()` reads as what it does
    from surehand.errors import (
        AmbiguousTarget,
        ApprovalDenied,
        InvalidRequest,
        OutcomeUnknown,
        PolicyDenied,
        StaleTarget,
        SurehandError,
        TargetNotFound,
        Timeout,
        Unavailable,
        VerificationFailed,
    )

__all__ = [
    "AmbiguousTarget",
    "ApprovalDenied",
    "ApprovalRequired",
    "AsyncHand",
    "AsyncLocator",
    "BatchResult",
    "Hand",
    "Interrupted",
    "InvalidRequest",
    "Locator",
    "OutcomeUnknown",
    "Picture",
    "PolicyDenied",
    "Receipt",
    "Scene",
    "StaleTarget",
    "SurehandError",
    "Target",
    "TargetNotFound",
    "Timeout",
    "Unavailable",
    "VerificationFailed",
    "__version__",
    "connect",
    "open",
]

_HOMES: Final = {
    "AsyncHand": "client.async_client",
    "connect": "client.async_client",
    "AsyncLocator": "client.locators",
    "ApprovalRequired": "client.results",
    "BatchResult": "client.results",
    "Interrupted": "client.results",
    "Receipt": "client.results",
    "Picture": "client.scenes",
    "Scene": "client.scenes",
    "Target": "client.scenes",
    "Hand": "client.sync_client",
    "Locator": "client.sync_client",
    "open": "client.sync_client",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'surehand' has no attribute {name!r}")
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("surehand")
    value = getattr(importlib.import_module(f"surehand.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
