"""JobSpec: the wire contract by which work is handed to whoever runs it.

A spec holds no secret: `storage_ref` names a connection or profile that the driver resolves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table: its URI and, when known, the `metaData.id` that must still be there."""

    uri: str
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Which delivery of named work a job brings: the `txn` action by which the name is known."""

    app_id: str
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """The `txn` action that makes the job apply once. It must not depend on the try number.

    Attributes:
        delivery: for named work that is to be done once more, under a key of its own: which delivery that
            is. A table that has recorded a later one takes nothing.
    """

    app_id: str
    version: int = 0
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One job.

    Attributes:
        kind: the handler's name in the registry (`load`, `optimize`, `vacuum`, ...).
        params: the kind's own parameters; JSON values only.
        deadline_ms: epoch milliseconds after which the job must not start another commit.
        engine: `auto`, `inline` or `spark`.
        user_metadata: provenance JSON written into `commitInfo.userMetadata`.
    """

    kind: str
    table: TableRef
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    idempotency: IdempotencyKey | None = None
    lease: str | None = None
    deadline_ms: int | None = None
    engine: str = "auto"
    storage_ref: str | None = None
    trace_id: str | None = None
    result_uri: str | None = None
    user_metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    job_id: str = ""
    format_version: int = FORMAT_VERSION
