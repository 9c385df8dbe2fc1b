"""A program of `benchmarks/soak/` on a session that runs already.

Usage: `python -m tests.support.delta_spark_server soak AREA ARGUMENT...`; the arguments are the program's.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from tests.support.repository import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(spark: SparkSession, area: str, *arguments: str) -> None:
    """Run it; its report tells what failed."""
    name = area.replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / "soak" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.main(arguments, spark)
