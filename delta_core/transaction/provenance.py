"""`commitInfo`: user, program, operation and metrics of a commit, in the form that delta-spark writes.

PROTOCOL.md, "Commit Provenance Information".
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from delta_core.actions import CommitInfo
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.isolation import IsolationLevel
from delta_core.version import VERSION

ENGINE_INFO = f"deltaward/{VERSION}"


def encode_parameters(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Operation parameters as strings. Strings are unchanged, other values become JSON, None is omitted.

    A list of columns becomes the string `["a","b"]`, as delta-spark stores it.
    """
    return {key: _as_string(value) for key, value in parameters.items() if value is not None}


def encode_metrics(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Operation metrics as strings. None is omitted."""
    return {key: _as_string(value) for key, value in metrics.items() if value is not None}


def recounted(metrics: Mapping[str, str], changes: Mapping[str, int]) -> dict[str, str]:
    """Operation metrics with changed counts. Metrics that were never set stay unset."""
    new = {key: str(int(metrics[key]) + change) for key, change in changes.items() if key in metrics}
    return {**metrics, **new}


def commit_info(
    *,
    operation: str,
    parameters: Mapping[str, str],
    metrics: Mapping[str, str],
    properties: CommitProperties,
    isolation: IsolationLevel,
    is_blind_append: bool,
    read_version: int,
    txn_id: str,
    timestamp_ms: int,
) -> CommitInfo:
    """The `commitInfo` of one attempt. `read_version` is -1 for a table that did not exist."""
    return CommitInfo(
        timestamp_ms=timestamp_ms,
        operation=operation,
        operation_parameters=parameters,
        operation_metrics=metrics,
        engine_info=properties.engine_info or ENGINE_INFO,
        user_name=properties.user_name or system_user(),
        user_metadata=properties.user_metadata,
        txn_id=txn_id,
        read_version=read_version if read_version >= 0 else None,
        isolation_level=isolation.value,
        is_blind_append=is_blind_append,
    )


@cache
def system_user() -> str | None:
    """The operating system's user name; None where the user has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _as_string(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)
