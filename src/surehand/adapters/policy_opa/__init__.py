"""A real OPA server, asked over HTTP (spec §6.1)."""

from surehand.adapters.policy_opa.engine import OpaEngine, open_opa

__all__ = ["OpaEngine", "open_opa"]
