"""The extra of an Airflow connection, read so that a damaged extra is an error."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Connection

from delta_core.errors import ConfigurationError


def extra_of(connection: Connection) -> dict[str, Any]:
    """The extra of a connection. Airflow masks its secrets in logs from now on.

    Raises:
        ConfigurationError: the extra is not a JSON object. Airflow itself would treat it as empty. The
            message contains no values.
    """
    extra: object = connection.extra_dejson
    if not isinstance(extra, dict) or (not extra and _holds_something(connection.extra)):
        raise ConfigurationError(
            f"The extra of the connection {connection.conn_id} is not a JSON object.",
            cause="Airflow would treat it as empty and ignore all of its settings.",
            fix="Correct the extra of the connection.",
        )
    return extra


def _holds_something(extra: str | None) -> bool:
    return (extra or "").strip() not in ("", "{}", "null")
