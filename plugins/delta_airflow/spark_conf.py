"""Spark settings: parsing, detection of secrets, and the settings that an operator must not set."""

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
"""Settings that the driver sets itself, so that the SQL of a job has the same meaning on every cluster."""

CONF_OF_ARGUMENTS = {
    "spark.app.name": "name",
    "spark.submit.deployMode": "deploy_mode",
    "spark.yarn.queue": "yarn_queue",
}
"""Settings for which spark-submit prefers an argument. The value in spark_conf would be ignored."""

PLACES = frozenset({"spark.master", "spark.remote"})
"""Settings with the address of Spark. Only a connection may set them."""

_WORDS = (
    r"passw(or)?d|passphrase|secret|token|credential|(^|[._-])(sas|pwd|pass|jwt|pat)([._-]|$)"
    r"|(access|account|api|private|shared|storage|encryption|customer|fernet|signing)[._-]?key|webhook"
)
_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)
_HARMLESS_NAME = re.compile(
    # Classes, files, switches and names of Kubernetes secrets. They refer to a secret but do not contain it.
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
    "Put the credentials of the store into the deltaward connection (storage_options), "
    "and those of Spark into the extra of the Spark connection."
)


def is_secret(name: str, value: str = "") -> bool:
    """Whether a setting holds a secret, judged by its name or by a password within its value."""
    named = _SECRET_NAME.search(name) is not None and _HARMLESS_NAME.search(name) is None
    return named or holds_secret(value)


def holds_secret(value: str) -> bool:
    """Whether a string contains a URL with a password, or an assignment such as `-Dpassword=x`."""
    return _SECRET_IN_STRING.search(value) is not None


def is_redacted_by_spark(name: str) -> bool:
    """Whether the Spark UI hides the value of a setting with this name by default."""
    return _REDACTED_BY_SPARK.search(name) is not None


def require_no_secrets(argument: str, settings: Mapping[str, str]) -> None:
    """Refuse an operator's settings if one of them is a secret. The message contains no values.

    Raises:
        ConfigurationError: a setting is a secret.
    """
    secrets = sorted(name for name, value in settings.items() if is_secret(name, value))
    if secrets:
        raise secret_error(argument, secrets)


def secret_error(argument: str, names: Iterable[str] = ()) -> ConfigurationError:
    """The error for an argument that holds a secret."""
    listed = ", ".join(names)
    return ConfigurationError(
        f"The argument {argument} holds a secret" + (f": {listed}" if listed else ""),
        cause="Airflow stores the arguments of operators in its database, and they become arguments of "
        "spark-submit.",
        fix=_STORAGE_FIX,
    )


def settings_of(name: str, value: object) -> dict[str, str]:
    """A mapping of names to strings, given as a mapping or as JSON; numbers and booleans become strings.

    Args:
        name: the name of the value in an error, such as `argument spark_conf`.

    Raises:
        ConfigurationError: the value is something else. The message omits it, because it may be a secret.
    """
    expected = "an object whose values are strings, numbers, true or false"
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "null")):
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            # Not chained: the original error contains the value.
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
            raise _invalid(f"value of {key!r} in the {name}", "a string, a number, true or false")
        settings[key] = str(entry)
    return settings


def _invalid(name: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"The {name} is not valid.", fix=f"Give {expected}.")
