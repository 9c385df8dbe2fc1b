"""Spark settings: how they are given, which of them are secrets, and which are not an operator's to set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from delta_core.errors import ConfigurationError

FIXED_CONF = frozenset(
    {
        "spark.sql.ansi.doubleQuotedIdentifiers",
        "spark.sql.ansi.enabled",
        "spark.sql.ansi.enforceReservedKeywords",
        "spark.sql.caseSensitive",
        "spark.sql.decimalOperations.allowPrecisionLoss",
        "spark.sql.legacy.parquet.nanosAsLong",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
        "spark.sql.mapKeyDedupPolicy",
        "spark.sql.parquet.binaryAsString",
        "spark.sql.parquet.inferTimestampNTZ.enabled",
        "spark.sql.parquet.int96AsTimestamp",
        "spark.sql.parser.escapedStringLiterals",
        "spark.sql.session.timeZone",
        "spark.sql.timestampType",
    }
)
"""Settings that the driver sets itself, so that the SQL of a job means the same everywhere."""

CONF_OF_ARGUMENTS = {
    "spark.app.name": "name",
    "spark.submit.deployMode": "deploy_mode",
    "spark.yarn.queue": "yarn_queue",
}
"""Settings that spark-submit takes from an argument first: what spark_conf says would be lost."""

PLACES = frozenset({"spark.master", "spark.remote"})
"""Settings that say where Spark is: a connection's to say."""

_WORDS = (
    r"passw(or)?d|passphrase|secret|token|credential|(^|[._-])(sas|pwd|pass|jwt|pat)([._-]|$)"
    r"|(access|account|api|private|shared|storage|encryption|customer|fernet|signing)[._-]?key|webhook"
)
_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)
_HARMLESS_NAME = re.compile(
    # Classes, files, switches, and names of Kubernetes' secrets: they lead to a secret and hold none.
    r"(\.providers?(\.type)?|file|path|location|\.enabled|pullsecrets)$"
    r"|\.renewal\.credentials$|\.credentials\.(renewalratio|retrywait)$"
    r"|^spark\.kubernetes\.(driver|executor)\.secret(s|keyref)\.",
    re.IGNORECASE,
)
_SECRET_IN_STRING = re.compile(
    rf"://[^/\s@]+@|({_WORDS})[\w.-]*\s*=\s*\S|[?&](sig|x-amz-signature)=", re.IGNORECASE
)
_REDACTED_BY_SPARK = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)

_STORAGE_FIX = (
    "Give the storage's credentials to the deltaward connection (storage_options), "
    "and Spark's own to the extra of the Spark connection"
)


def is_secret(name: str, value: str = "") -> bool:
    """Whether a setting holds a secret: its name says so, or its value has a password in it."""
    named = _SECRET_NAME.search(name) is not None and _HARMLESS_NAME.search(name) is None
    return named or holds_secret(value)


def holds_secret(text: str) -> bool:
    """Whether a string has a URL with a password in it, or an assignment such as `-Dpassword=x`."""
    return _SECRET_IN_STRING.search(text) is not None


def is_redacted_by_spark(name: str) -> bool:
    """Whether Spark's pages hide the value of a setting of that name by default."""
    return _REDACTED_BY_SPARK.search(name) is not None


def require_no_secrets(argument: str, settings: Mapping[str, str]) -> None:
    """Refuse an operator's settings when one of them is a secret. The message names no value.

    Raises:
        ConfigurationError: one is.
    """
    secrets = sorted(name for name, value in settings.items() if is_secret(name, value))
    if secrets:
        raise secret_error(argument, secrets)


def secret_error(argument: str, names: Iterable[str] = ()) -> ConfigurationError:
    """What to say of an argument that holds a secret."""
    listed = ", ".join(names)
    return ConfigurationError(
        f"The argument {argument} holds a secret" + (f": {listed}" if listed else ""),
        cause="An operator's arguments are kept in Airflow's database and become arguments of spark-submit",
        fix=_STORAGE_FIX,
    )


def settings_of(name: str, value: object) -> dict[str, str]:
    """A mapping of names to strings, given as a mapping or as JSON; numbers and booleans become strings.

    Args:
        name: what to call it in an error, such as `argument spark_conf`.

    Raises:
        ConfigurationError: it is something else. No value is in the message: it may be a secret.
    """
    expected = "an object of names and texts, numbers, true or false"
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "null")):
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            # Not chained: the error would carry the value.
            raise _invalid(name, expected) from None
    if not isinstance(value, Mapping):
        raise _invalid(name, expected)
    settings = {}
    for key, entry in value.items():
        if not (isinstance(key, str) and key) or "=" in key or "\0" in key:
            raise _invalid(name, expected)
        if isinstance(entry, bool):
            entry = str(entry).lower()
        if not isinstance(entry, (str, int, float)) or "\0" in str(entry):
            raise _invalid(f"value of {key!r} in the {name}", "a text, a number, true or false")
        settings[key] = str(entry)
    return settings


def _invalid(name: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"The {name} is not valid", fix=f"Give {expected}")
