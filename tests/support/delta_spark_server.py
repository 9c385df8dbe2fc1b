"""delta-spark in a process of its own, whose one session answers program after program.

Usage: `python -m tests.support.delta_spark_server PROGRAM ARGUMENT...` runs `main` of
`tests.support.delta_spark_PROGRAM` with a new session and the arguments. Without arguments a line of standard
input is the JSON list of each run, and a line of standard output its JSON answer: null, or what went wrong.

A session of one's own takes longer to begin than most programs to run. Each program gets a new one of the
same Spark: settings and views are its own, and no log is kept for it that another has read.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback

from pyspark.sql import SparkSession

from tests.support.delta_spark_reader import SMALL_QUERIES, session


def run(spark: SparkSession, program: str, *arguments: str) -> None:
    """Run one of them."""
    main = importlib.import_module(f"tests.support.delta_spark_{program}").main
    try:
        own = spark.newSession()
        for key, value in SMALL_QUERIES.items():
            own.conf.set(key, value)
        main(own, *arguments)
    finally:
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


def serve() -> None:
    """Answer until there are no more lines."""
    # What Spark and programs print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = session(threads=1)
    for line in sys.stdin:
        problem = None
        try:
            run(spark, *json.loads(line))
        except Exception:
            problem = traceback.format_exc()
        print(json.dumps(problem), file=answers)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(session(), *sys.argv[1:])
    else:
        serve()
