"""Random merges carried out: by Deltaward against the model, and by delta-spark for comparison."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from delta_core import DeltaTable as OurTable
from delta_core import write_deltalake as write
from delta_core.errors import MergeDuplicateMatchError
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.merge.clauses import MergeAction
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.merge import MergeRequest, merge_into
from tests.support.merge_model import SCHEMA, Case, Clause, DuplicateMatchError, Row, random_case
from tests.support.row_statement_runs import by_peer
from tests.support.rows import canonical_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def make_table(case: Case, uri: Path, properties: Mapping[str, str] | None = None) -> None:
    """The case's target, each list of rows as a commit of its own. A table with properties is of ours."""
    for rows in case.target:
        data = pa.Table.from_pylist(rows, SCHEMA)
        if properties:
            write(uri, data, mode="append", partition_by=case.partition_by, configuration=dict(properties))
            continue
        write_deltalake(str(uri), data, mode="append", partition_by=case.partition_by or None)


def source_frame(spark: SparkSession, case: Case) -> DataFrame:
    """The case's source."""
    if not case.source:  # Connect infers no schema of an empty table
        return spark.createDataFrame([], "k bigint, k2 string, p string, v bigint, w string")
    return spark.createDataFrame(pa.Table.from_pylist(case.source, SCHEMA))


def clauses_of(case: Case) -> MergeClauses:
    """The case's clauses as Deltaward takes them."""

    def converted(clauses: list[Clause]) -> tuple[MergeClause, ...]:
        return tuple(
            MergeClause(
                action=MergeAction(clause.action),
                condition=clause.condition.text if clause.condition else None,
                values={name: v.text for name, v in clause.values.items()} if clause.values else None,
            )
            for clause in clauses
        )

    return MergeClauses(
        matched=converted(case.matched),
        not_matched=converted(case.not_matched),
        not_matched_by_source=converted(case.not_matched_by_source),
    )


def run_merge(spark: SparkSession, case: Case, uri: Path, engine_io: EngineIO = EngineIO.AUTO) -> JobResult:
    """Carry the case out with Deltaward."""
    request = MergeRequest(on=case.on.text, clauses=clauses_of(case), source_alias="s", engine_io=engine_io)
    return merge_into(source_frame(spark, case), Snapshot.load(open_store(str(uri))), request)


def rows_as_text(rows: list[Row]) -> list[str]:
    """Rows in the comparable form of `canonical_rows`."""
    return canonical_rows(pa.Table.from_pylist(rows, SCHEMA))


def table_rows(uri: Path) -> list[str]:
    """The table's rows, read by the deltalake package."""
    return canonical_rows(by_peer(uri))


def files_on_disk(uri: Path) -> set[str]:
    """The data files that lie below the table."""
    return {str(path) for path in uri.rglob("*") if path.is_file() and "_delta_log" not in path.parts}


def check_against_model(
    spark: SparkSession,
    seed: str,
    folder: Path,
    properties: Mapping[str, str] | None = None,
    engine_io: EngineIO = EngineIO.AUTO,
) -> str:
    """One random case; what came of it, or an AssertionError that shows the statement."""
    case = random_case(random.Random(seed))
    uri = folder / "table"
    make_table(case, uri, properties)
    before, files = table_rows(uri), files_on_disk(uri)
    try:
        expected, counts = case.expected()
    except DuplicateMatchError:
        try:
            run_merge(spark, case, uri)
        except MergeDuplicateMatchError:
            assert table_rows(uri) == before, case.sql("t", "s")
            assert files_on_disk(uri) == files, case.sql("t", "s")
            return "refused"
        raise AssertionError(f"{seed}: the duplicate match passed: {case.sql('t', 's')}") from None
    metrics: Any = run_merge(spark, case, uri, engine_io).output["metrics"]
    assert table_rows(uri) == rows_as_text(expected), f"{seed}: {case.sql('t', 's')}"
    found = {
        name: metrics[f"numTargetRows{name.capitalize()}"] for name in ("inserted", "updated", "deleted")
    }
    assert found == counts, f"{seed}: {case.sql('t', 's')}"
    if properties and "delta.enableChangeDataFeed" in properties:
        assert changes_of_last_commit(uri) == differences(before, table_rows(uri)), case.sql("t", "s")
    return "merged"


def changes_of_last_commit(uri: Path) -> Counter[str]:
    """By row, how many more of it there are after the last commit, by its change data."""
    table = OurTable(uri)
    changes = pa.table(table.load_cdf(starting_version=table.version()).read_all())
    net: Counter[str] = Counter()
    for kind, sign in (("insert", 1), ("update_postimage", 1), ("delete", -1), ("update_preimage", -1)):
        chosen = changes.filter(pc.equal(changes["_change_type"], kind)).select(SCHEMA.names)
        for row in canonical_rows(chosen):
            net[row] += sign
    return Counter({row: count for row, count in net.items() if count})


def differences(before: list[str], after: list[str]) -> Counter[str]:
    """By row, how many more of it there are after than before."""
    net = Counter(after)
    net.subtract(before)
    return Counter({row: count for row, count in net.items() if count})


def check_against_delta_spark(spark: SparkSession, seed: str, folder: Path) -> str:
    """One random case by both on equal copies of a table; the session has delta-spark's jars."""
    from pyspark.errors import PySparkException

    case = random_case(random.Random(seed))
    ours, theirs = folder / "ours", folder / "theirs"
    make_table(case, ours)
    make_table(case, theirs)
    source_frame(spark, case).createOrReplaceTempView("merge_source")
    statement = case.sql(f"delta.`{theirs}`", "merge_source")
    refused: Any = None
    try:
        spark.sql(statement).collect()
    except PySparkException as error:
        refused = error
    if refused is not None:
        assert "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW" in str(refused), f"{seed}: {refused}"
        try:
            run_merge(spark, case, ours)
        except MergeDuplicateMatchError:
            return "refused"
        raise AssertionError(f"{seed}: only delta-spark refuses {statement}")
    metrics: Any = run_merge(spark, case, ours).output["metrics"]
    assert table_rows(ours) == table_rows(theirs), f"{seed}: {statement}"
    info = DeltaTable(str(theirs)).history(1)[0]
    if info["operation"] != "MERGE":
        # Where no row changes delta-spark records nothing; we record that the merge was made.
        changes = [metrics[f"numTargetRows{name}"] for name in ("Inserted", "Updated", "Deleted")]
        assert changes == [0, 0, 0], f"{seed}: {changes}: {statement}"
        return "changed nothing"
    assert DeltaTable(str(ours)).history(1)[0]["operation"] == "MERGE"
    assert set(info["operationMetrics"]) <= set(metrics), f"{seed}: {info['operationMetrics']}"
    assert set(info["operationParameters"]) == set(DeltaTable(str(ours)).history(1)[0]["operationParameters"])
    for name in ("Inserted", "Updated", "Deleted"):
        key = f"numTargetRows{name}"
        assert int(info["operationMetrics"][key]) == metrics[key], f"{seed}: {key}: {statement}"
    return "merged"
