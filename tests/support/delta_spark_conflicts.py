"""Has delta-spark commit two transactions that overlap, in a process of its own.

Usage: `python -m tests.support.delta_spark_server conflicts REQUESTS FOLDER OUT`.

REQUESTS is a JSON list of {"log", "loser", "winner"}: the commits of a table by file name, and for each
transaction {"reads_all", "reads", "files", "app_id", "actions"}: whether it reads every row, else the
predicates that it reads by, each a list of conjuncts, and the `add` actions of files that it reads as they
are; the application whose version it looks up; what it commits. Both begin on the same version, and the
winner commits first. OUT is a JSON list of the exceptions (simple names) that the losers got, null for those
that committed. An exception that is no conflict ends the program.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from tests.support.delta_spark_writer import CONF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFLICTS = ("io.delta.exceptions.",)


def _scala(spark: SparkSession, values: list[Any]) -> Any:
    # The session gives its gateway no public name.
    converters = spark._jvm.scala.jdk.javaapi.CollectionConverters
    return converters.asScala(spark._jvm.java.util.ArrayList(values)).toSeq()


def _begin(spark: SparkSession, path: Path, request: dict[str, Any]) -> Any:
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path))
    transaction = log.startTransaction()
    if request["reads_all"]:
        transaction.readWholeTable()
    for conjuncts in request["reads"]:
        conditions = []
        for text in conjuncts:
            frame = spark.read.format("delta").load(str(path)).where(text)
            conditions.append(frame._jdf.queryExecution().analyzed().condition())
        transaction.filterFiles(_scala(spark, conditions), False)
    if request["files"]:
        read = spark._jvm.org.apache.spark.sql.delta.actions.Action.fromJson
        transaction.trackFilesRead(_scala(spark, [read(line) for line in request["files"]]))
    if request["app_id"] is not None:
        transaction.txnVersion(request["app_id"])
    return transaction


def _commit(spark: SparkSession, transaction: Any, request: dict[str, Any]) -> None:
    delta = spark._jvm.org.apache.spark.sql.delta
    actions = [delta.actions.Action.fromJson(line) for line in request["actions"]]
    manual = spark._jvm.java.lang.Class.forName(
        "org.apache.spark.sql.delta.DeltaOperations$ManualUpdate$",
        True,
        spark._jvm.java.lang.Thread.currentThread().getContextClassLoader(),
    )
    transaction.commit(_scala(spark, actions), manual.getField("MODULE$").get(None))


def run(spark: SparkSession, path: Path, request: dict[str, Any]) -> str | None:
    """One pair; the simple name of the loser's exception."""
    folder = path / "_delta_log"
    folder.mkdir(parents=True)
    for name, text in request["log"].items():
        (folder / name).write_text(text)
    loser = _begin(spark, path, request["loser"])
    winner = _begin(spark, path, request["winner"])
    _commit(spark, winner, request["winner"])
    try:
        _commit(spark, loser, request["loser"])
    except Py4JJavaError as error:
        name = error.java_exception.getClass().getName()
        if not name.startswith(CONFLICTS) or not name.endswith("Exception"):
            raise
        return str(name.rpartition(".")[2])
    return None


def main(spark: SparkSession, requests: str, folder: str, out: str) -> None:
    """Answer every request."""
    spark.sparkContext.setLogLevel("OFF")
    for key, value in CONF.items():
        spark.conf.set(key, value)
    answers = []
    for index, request in enumerate(json.loads(Path(requests).read_text())):
        began = time.monotonic()
        answers.append(run(spark, Path(folder) / str(index), request))
        print(f"{index}: {answers[-1]}, {time.monotonic() - began:.1f} s", flush=True)
    Path(out).write_text(json.dumps(answers))
