"""Spark settings that a driver gets by its environment: secrets, and a session's own.

An argument can be read by every user of the machine, and what spark-submit sets stands in its log.
"""

from __future__ import annotations

import json
import os
import re

from delta_core.errors import ConfigurationError

VARIABLE = "DELTAWARD_SPARK_CONF"
"""JSON object of settings and strings."""

_REDACTION = "spark.redaction.regex"
_SPARKS_OWN = "(?i)secret|password|token|access[.]?key"


def handed_conf(*, with_jvm: bool) -> dict[str, str]:
    """The settings, for a session that is to be made.

    Args:
        with_jvm: whether the session has a JVM of its own. Then all of these settings are hidden on Spark's
            pages and in its event log, whatever their names; a Connect server decides that itself.

    Raises:
        ConfigurationError: the variable holds something else.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return {}
    try:
        conf = json.loads(text)
    except ValueError:
        conf = None  # the error would carry the value
    if not isinstance(conf, dict) or not all(isinstance(value, str) for value in conf.values()):
        raise ConfigurationError(f"{VARIABLE} is not valid", fix="Give a JSON object of names and strings")
    if with_jvm and _REDACTION not in conf:
        known = _of_spark_submit(_REDACTION) or _SPARKS_OWN
        # Spark shows these once more under Hadoop's own names.
        names = sorted(name.removeprefix("spark.hadoop.").removeprefix("spark.") for name in conf)
        conf[_REDACTION] = "|".join([known, *map(re.escape, names)])
    return conf


def _of_spark_submit(name: str) -> str | None:
    """A setting that spark-submit has made, from its arguments and files; None where it started nothing."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().get(name)
