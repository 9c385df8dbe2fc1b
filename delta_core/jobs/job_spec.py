"""JobSpec: the document that describes one job to a runner.

A spec holds no secret: `storage_ref` names a connection or profile that the driver resolves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table: its URI and, when known, the `metaData.id` that the table must still have."""

    uri: str
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The delivery of named work that a job repeats: the `txn` action that records the name."""

    app_id: str
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """The `txn` action that makes the job apply once. It must not depend on the try number.

    Attributes:
        delivery: the delivery, for named work that the job repeats under a separate key. The job does nothing
            when the table has recorded a later delivery.
    """

    app_id: str
    version: int = 0
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One job.

    Attributes:
        kind: the handler's name in the registry (`load`, `optimize`, `vacuum`, ...).
        params: the parameters of the kind; JSON values only.
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
