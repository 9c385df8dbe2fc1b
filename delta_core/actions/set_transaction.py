"""`txn`: the version of an application, for idempotent writes (PROTOCOL.md, "Transaction Identifiers")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransaction:
    """A record that the application `app_id` has applied its work up to `version`."""

    app_id: str
    version: int
    last_updated_ms: int | None = None
