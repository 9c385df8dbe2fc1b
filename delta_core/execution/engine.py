"""The choice of where a task map runs."""

from __future__ import annotations

from typing import Final, Literal

from delta_core.errors import ConfigurationError

Engine = Literal["inline", "spark"]

ENGINES: Final = ("auto", "inline", "spark")
"""The engines that a job specification may request."""

INLINE_LIMIT_BYTES: Final = 8 << 30
"""Up to this size of planned data, threads of one process finish before a cluster would pay off."""


def choose_engine(
    requested: str,
    planned_bytes: int,
    *,
    spark_available: bool = False,
    inline_limit_bytes: int = INLINE_LIMIT_BYTES,
) -> Engine:
    """The engine for work on `planned_bytes` of data files.

    Args:
        requested: `auto`, `inline` or `spark`.
        planned_bytes: size of the data files that the plan reads.
        spark_available: True when the caller has a Spark executor.
        inline_limit_bytes: above this, `auto` uses Spark when it is available.

    Raises:
        ConfigurationError: the engine is unknown, or Spark is requested but not available.
    """
    if requested not in ENGINES:
        raise ConfigurationError(
            f"The engine {requested!r} does not exist.", fix=f"Choose one of {', '.join(ENGINES)}."
        )
    if requested == "spark":
        if not spark_available:
            raise ConfigurationError(
                "The job requests the engine 'spark', which is not available.",
                cause="This process has no Spark session.",
                fix="Run the job with spark_jobs.main or through a Spark runner, or set engine to 'auto'.",
            )
        return "spark"
    if requested == "auto" and spark_available and planned_bytes > inline_limit_bytes:
        return "spark"
    return "inline"
