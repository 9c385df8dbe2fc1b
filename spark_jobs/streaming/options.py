"""The options of streams by the names that delta-spark gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from delta_core.errors import ConfigurationError
from delta_core.follow import BatchLimits, FollowOptions, PinOptions
from spark_jobs.reader.read import to_epoch_ms

CHANGE_FEED_NAMES: Final = ("readChangeFeed", "readChangeData")

STREAM_OPTIONS: Final = (
    "startingVersion",
    "startingTimestamp",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "ignoreDeletes",
    "ignoreChanges",
    "skipChangeCommits",
    "failOnDataLoss",
    "pinName",
    "pinSeconds",
    *CHANGE_FEED_NAMES,
)
"""The options of a stream that reads a table. Names are compared without case."""

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def follow_options(options: Mapping[str, str]) -> FollowOptions:
    """The rows that a stream reads, by its options.

    Raises:
        ConfigurationError: a value is not valid.
    """
    named = folded(options)
    version, timestamp = named.get("startingversion"), named.get("startingtimestamp")
    starting: int | str | None = None
    if version is not None:
        starting = "latest" if version.strip().lower() == "latest" else whole(version, "startingVersion")
    return FollowOptions(
        starting_version=starting,
        starting_timestamp=None if timestamp is None else to_epoch_ms(timestamp, up=True),
        ignore_deletes=flag(named, "ignoreDeletes"),
        ignore_changes=flag(named, "ignoreChanges"),
        skip_change_commits=flag(named, "skipChangeCommits"),
        fail_on_data_loss=flag(named, "failOnDataLoss", default=True),
        change_feed=any(flag(named, name) for name in CHANGE_FEED_NAMES),
    )


def batch_limits(options: Mapping[str, str]) -> BatchLimits:
    """How much a batch of a stream has, from its options.

    Raises:
        ConfigurationError: a value is not a positive number.
    """
    named = folded(options)
    files, size = named.get("maxfilespertrigger"), named.get("maxbytespertrigger")
    return BatchLimits.of(
        None if files is None else whole(files, "maxFilesPerTrigger"),
        None if size is None else _bytes(size),
    )


def pin_options(options: Mapping[str, str]) -> PinOptions | None:
    """The pin of a stream, from its options; None without one.

    Raises:
        ConfigurationError: a value is not valid.
    """
    named = folded(options)
    seconds = named.get("pinseconds")
    if seconds is None:
        return PinOptions.of(named.get("pinname"), None)
    try:
        found = float(seconds)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise ConfigurationError(
            f"The option pinSeconds cannot be {seconds!r}.", fix="Pass a number of seconds above 0."
        )
    return PinOptions.of(named.get("pinname"), found)


def folded(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in lower case."""
    return {name.lower(): value for name, value in options.items()}


def flag(named: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """An option that is true or false.

    Raises:
        ConfigurationError: it is neither.
    """
    value = named.get(name.lower())
    if value is None:
        return default
    if value.strip().lower() not in ("true", "false"):
        raise ConfigurationError(f"The option {name} cannot be {value!r}.", fix="Pass true or false.")
    return value.strip().lower() == "true"


def whole(value: str, name: str) -> int:
    """An option that is a whole number.

    Raises:
        ConfigurationError: it is not.
    """
    try:
        return int(value)
    except ValueError:
        raise ConfigurationError(
            f"The option {name} cannot be {value!r}.", fix="Pass a whole number such as 100."
        ) from None


def _bytes(value: str) -> int:
    """A size such as `1g`, as Spark writes sizes."""
    found = re.fullmatch(r"\s*(\d{1,18})\s*([kmgt]?)b?\s*", value.lower())
    if found is None:
        raise ConfigurationError(
            f"The option maxBytesPerTrigger cannot be {value!r}.", fix="Pass a size such as 1g or 104857600."
        )
    return int(found[1]) * _UNITS[found[2]]
