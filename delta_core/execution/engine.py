"""Choosing where a task map runs."""

from __future__ import annotations

from typing import Final, Literal

from delta_core.errors import ConfigurationError

Engine = Literal["inline", "spark"]

ENGINES: Final = ("auto", "inline", "spark")
"""What a JobSpec may ask for."""

INLINE_LIMIT_BYTES: Final = 8 << 30
"""Up to this much planned data, threads of one process finish before a cluster would pay off."""


def choose_engine(
    requested: str,
    planned_bytes: int,
    *,
    spark_available: bool = False,
    inline_limit_bytes: int = INLINE_LIMIT_BYTES,
) -> Engine:
    """Where to run work on `planned_bytes` of data files.

    Args:
        requested: `auto`, `inline` or `spark`.
        planned_bytes: size of the data files that the plan reads.
        spark_available: True when the caller has a Spark executor at hand.
        inline_limit_bytes: above this, `auto` takes Spark where there is one.

    Raises:
        ConfigurationError: an unknown engine, or Spark asked for where there is none.
    """
    if requested not in ENGINES:
        raise ConfigurationError(
            f"the engine {requested!r} does not exist", fix=f"choose one of {', '.join(ENGINES)}"
        )
    if requested == "spark":
        if not spark_available:
            raise ConfigurationError(
                "the job asks for the engine 'spark'",
                cause="this process has no Spark session",
                fix="run the job with spark_jobs.main or through a Spark runner, or set engine to 'auto'",
            )
        return "spark"
    if requested == "auto" and spark_available and planned_bytes > inline_limit_bytes:
        return "spark"
    return "inline"
