"""Times in job parameters and CLI options: ISO 8601 strings or epoch milliseconds."""

from __future__ import annotations

import datetime as dt

from delta_core.errors import ConfigurationError


def parse_timestamp_ms(value: str | int) -> int:
    """Epoch milliseconds of an ISO 8601 time. A time without a zone is UTC.

    Raises:
        ConfigurationError: the value is not such a time.
    """
    if isinstance(value, int):
        return value
    string = value.strip()
    try:
        if string.isdigit() and len(string) > 8:
            return int(string)
        moment = dt.datetime.fromisoformat(string)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(
            f"{value!r} is not a time.",
            cause=f"{error}.",
            fix="Write a time such as 2024-05-01T12:00:00+00:00.",
        ) from error
