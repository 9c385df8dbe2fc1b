"""Streams, with Spark and without."""

from __future__ import annotations

from tests.support.spark import spark_session

__all__ = ["spark_session"]
