"""Times that people give: ISO 8601 text or epoch milliseconds."""

from __future__ import annotations

import datetime as dt

from delta_core.errors import ConfigurationError


def parse_timestamp_ms(value: str | int) -> int:
    """Epoch milliseconds of an ISO 8601 time; one without a zone is UTC.

    Raises:
        ConfigurationError: it is no such time.
    """
    if isinstance(value, int):
        return value
    text = value.strip()
    try:
        if text.isdigit() and len(text) > 8:
            return int(text)
        moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(
            f"{value!r} is not a time", cause=str(error), fix="write it like 2024-05-01T12:00:00+00:00"
        ) from error
