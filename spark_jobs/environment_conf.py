"""Spark settings that a driver receives in an environment variable: secrets and session settings.

They are not passed as arguments, because every user of the machine can read arguments, and spark-submit
logs its settings.
"""

from __future__ import annotations

import json
import os
import re

from delta_core.errors import ConfigurationError

VARIABLE = "DELTAWARD_SPARK_CONF"
"""The variable holds a JSON object of settings with string values."""

_REDACTION = "spark.redaction.regex"
_DEFAULT_REDACTION = "(?i)secret|password|token|access[.]?key"


def handed_conf(*, with_jvm: bool) -> dict[str, str]:
    """The settings in the environment variable DELTAWARD_SPARK_CONF, for a new session.

    Args:
        with_jvm: whether the session starts a JVM. Then Spark redacts all of these settings in its UI and in
            its event log. A Connect server redacts by the rules in its configuration.

    Raises:
        ConfigurationError: the variable is not a JSON object of strings.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return {}
    try:
        conf = json.loads(text)
    except ValueError:
        conf = None  # the error would contain the value
    if not isinstance(conf, dict) or not all(isinstance(value, str) for value in conf.values()):
        raise ConfigurationError(
            f"The environment variable {VARIABLE} is not valid.", fix="Set it to a JSON object of strings."
        )
    if with_jvm and _REDACTION not in conf:
        redaction = _spark_submit_setting(_REDACTION) or _DEFAULT_REDACTION
        # Spark also shows these settings without the prefix `spark.hadoop.` or `spark.`.
        names = sorted(name.removeprefix("spark.hadoop.").removeprefix("spark.") for name in conf)
        conf[_REDACTION] = "|".join([redaction, *map(re.escape, names)])
    return conf


def _spark_submit_setting(name: str) -> str | None:
    """A setting of spark-submit, from its arguments and files; None without spark-submit."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().get(name)
