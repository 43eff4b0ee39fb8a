"""The journal in one SQLite file (spec §7): durable appends in shared commits, every read verified."""

from __future__ import annotations

from surehand.adapters.journal_sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
