"""Peers read a table that we wrote, at every version, and go on writing after a checkpoint of ours.

A peer may refuse a table that has what it does not do; it must say so in words that name a limit. What it
said is part of the outcome. Whatever it does read must be the model's rows.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import duckdb_extension_delta
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from delta_core import DeltaTable
from delta_core.scan.commit_changes import COMMIT_TIMESTAMP
from delta_core.schema.arrow import is_marked
from delta_core.table_features.feature import reader_features, writer_features
from tests.state_machine.features import Way
from tests.state_machine.machine import _same
from tests.state_machine.model import KEY, State
from tests.state_machine.operations.registry import Draw
from tests.state_machine.reading import canonical_model
from tests.support.feature_comparison import collected
from tests.support.feature_tables import SparkErrors, condition_of
from tests.support.rows import canonical_rows
from tests.support.written_tables import WrittenTable, drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LIMIT = re.compile(r"unsupported|not (supported|implemented)|(does not|doesn't) support")
_NEWEST_SCHEMA = (
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
)
"""delta-spark reads a range by the newest schema, and says so where an older version's does not fit it."""

_NEGATIVE_DECIMAL = re.compile(r"Failed to parse value '-\d+\.-\d+' as 'decimal")

_PARTICULAR = re.compile(r"(0x[0-9a-f]+|/[^\s,;'\"]+|[0-9a-f]{8}-[0-9a-f-]{27}|\b\d+\b)")


class RefusalError(Exception):
    """A peer says that it does not do something."""


class FaultError(RefusalError):
    """A peer fails by a fault of its own that is known, perhaps half-way."""


class Peers:
    """The peers, one Spark session for all tables."""

    def __init__(self, spark: SparkSession | None) -> None:
        self._spark = spark
        (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
        self._duckdb = duckdb.connect()
        self._duckdb.load_extension(str(extension))
        self._duckdb.execute("SET TimeZone = 'UTC'")
        self.readers: dict[str, Callable[[Path, int], pa.Table]] = {
            "deltalake": self._by_deltalake,
            "duckdb": self._by_duckdb,
        }
        self.writers: dict[str, Callable[[Path, pa.Table | None, str | None], None]] = {
            "deltalake": self._deltalake_goes_on
        }
        if spark is not None:
            self.readers["delta-spark"] = self._by_spark
            self.writers["delta-spark"] = self._spark_goes_on

    def _by_deltalake(self, path: Path, version: int) -> pa.Table:
        table = deltalake.DeltaTable(str(path), version=version)
        return pa.table(deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())

    def _by_duckdb(self, path: Path, version: int) -> pa.Table:
        scan = "SELECT * FROM delta_scan(?, version := ?::UBIGINT)"
        return self._duckdb.execute(scan, [str(path), version]).to_arrow_table()

    def _by_spark(self, path: Path, version: int) -> pa.Table:
        assert self._spark is not None
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        return collected(reader.load(str(path)))

    def changes_by_spark(self, path: Path, first: int, last: int) -> pa.Table:
        """What delta-spark's change feed has of these versions."""
        assert self._spark is not None
        reader = self._spark.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", first).option("endingVersion", last)
        return collected(reader.load(str(path)))

    def _deltalake_goes_on(self, path: Path, rows: pa.Table | None, predicate: str | None) -> None:
        if rows is not None:
            deltalake.write_deltalake(str(path), rows, mode="append")
        if predicate is not None:
            deltalake.DeltaTable(str(path)).delete(predicate)

    def _spark_goes_on(self, path: Path, rows: pa.Table | None, predicate: str | None) -> None:
        assert self._spark is not None
        if rows is not None:
            rows = rows.cast(pa.schema([_for_spark(field) for field in rows.schema]))
            schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
            frame = self._spark.createDataFrame(rows, schema)
            frame.write.format("delta").mode("append").save(str(path))
        if predicate is not None:
            self._spark.sql(f"DELETE FROM delta.`{path}` WHERE {predicate}")

    @property
    def spark(self) -> SparkSession | None:
        """The session, if there is one."""
        return self._spark

    def forget(self) -> None:
        """Let go of the tables: delta-spark keeps the state of each, until its heap is full of hundreds."""
        if self._spark is not None:
            forget_tables(self._spark)


def forget_tables(spark: SparkSession) -> None:
    """Let go of what delta-spark keeps of the tables that it has read."""
    spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    spark.catalog.clearCache()


def _for_spark(field: pa.Field) -> pa.Field:
    """A column as Spark takes it from Arrow: its mark of a variant is on the first of the parts."""
    if not is_marked(field):
        return field
    value, metadata = field.type.field("value"), field.type.field("metadata")
    parts = pa.struct([metadata.with_metadata({"variant": "true"}), value])
    return pa.field(field.name, parts, nullable=field.nullable)


def check_table(
    peers: Peers, name: str, ways: Iterable[Way], scratch: Path, *, operations: int
) -> dict[str, Any]:
    """Make a table of ours, have the peers read it, and have them go on.

    Returns:
        What was done and compared: counts, and each refusal in the peer's words.

    Raises:
        AssertionError: somebody read other rows than the model has.
    """
    rng = random.Random(name)

    def run(draw: Draw) -> dict[str, Any]:
        table = WrittenTable()
        try:
            table.begin(ways, draw)
            for _ in range(operations):
                table.step(rng, draw)
            return _checked(peers, table, draw, scratch)
        finally:
            table.teardown()

    return drawn(name, run)


def _checked(peers: Peers, table: WrittenTable, draw: Draw, scratch: Path) -> dict[str, Any]:
    protocol = table.newest.protocol()
    outcome: dict[str, Any] = {
        "features": sorted(way.name for way in table.ways),
        "protocol": sorted(reader_features(protocol) | writer_features(protocol)),
        "operations": dict(table.done),
        "versions": len(table.model.promised()),
        "rows": sum(len(table.model.at(version).rows) for version in table.model.promised()),
        "reads": {peer: _reads(peers, peer, table) for peer in sorted(peers.readers)},
    }
    if peers.spark is not None:
        outcome["changes"] = _changes(peers, table)
    outcome["goes_on"] = {
        peer: _goes_on(peers, peer, table, draw, scratch / peer) for peer in sorted(peers.writers)
    }
    return outcome


def _reads(peers: Peers, peer: str, table: WrittenTable) -> dict[str, Any]:
    equal, refused = 0, Counter[str]()
    for version in table.model.promised():
        try:
            found = unless_refused(lambda at=version: peers.readers[peer](table.path, at))
        except RefusalError as refusal:
            refused[str(refusal)] += 1
            continue
        rows = table.model.at(version).visible()
        fault, columns = _known_fault(peer, table, version)
        if columns:
            refused[fault] += 1
            found = found.drop_columns(list(columns))
            rows = [{name: row[name] for name in row if name not in columns} for row in rows]
        _same(canonical_rows(found), canonical_model(rows), f"version {version} by {peer}")
        equal += not columns
    return {"equal": equal, "refused": dict(refused)}


def _known_fault(peer: str, table: WrittenTable, version: int) -> tuple[str, tuple[str, ...]]:
    """What a peer is known to read wrong in any engine's tables, and the columns that are left out for it."""
    if peer == "duckdb":
        mode = DeltaTable(table.path, version).metadata().configuration.get("delta.columnMapping.mode")
        if mode in ("name", "id"):
            words = "partition columns are null where columns are mapped (duckdb/duckdb-delta issue 343)"
            return words, table.model.at(version).partition_by
    return "", ()


def _changes(peers: Peers, table: WrittenTable) -> dict[str, Any]:
    """Both change feeds, of every run of versions that record changes and have the same columns."""
    outcome = {"versions": 0, "rows": 0, "refused": Counter[str]()}
    for first, last in recorded_ranges(table):
        ours = DeltaTable(table.path, last, clock=table.clock).load_cdf(first, last).read_all()
        try:
            theirs = unless_refused(lambda a=first, b=last: peers.changes_by_spark(table.path, a, b))
        except RefusalError as refusal:
            outcome["refused"][str(refusal)] += 1
            continue
        # Without column mapping delta-spark gives the newest columns, whatever the range.
        kept = [name for name in ours.column_names if name != COMMIT_TIMESTAMP]
        if not set(kept) <= set(theirs.column_names):
            outcome["refused"]["it reads the newest schema, which lacks columns of the range"] += 1
            continue
        more = [name for name in theirs.column_names if name not in ours.column_names]
        assert all(theirs.column(name).null_count == theirs.num_rows for name in more), more
        what = f"changes of versions {first} to {last}"
        required = {column.name for column in table.model.at(last).columns if not column.nullable}
        invented = [name for name in kept if name in required and ours.column(name).null_count]
        if invented:
            # A restore takes rows away that were allowed to have a null, and makes the column NOT NULL again.
            outcome["refused"]["it reads a value where a column was allowed to be null before a restore"] += 1
        moved = [name for name in kept if name in _moved(table, first, last)]
        if moved:
            # Files of before are read as if partitioned like the newest: of its own tables, too.
            outcome["refused"]["it reads a column as null whose part in the partitioning changed"] += 1
        kept = [name for name in kept if name not in (*invented, *moved)]
        _same(canonical_rows(theirs.select(kept)), canonical_rows(ours.select(kept)), what)
        if not (invented or moved):
            outcome["versions"] += last - first + 1
            outcome["rows"] += ours.num_rows
    outcome["refused"] = dict(outcome["refused"])
    return outcome


def recorded_ranges(table: WrittenTable) -> list[tuple[int, int]]:
    """Every run of versions that record changes and have the same columns: its first and its last version."""
    found: list[tuple[int, int]] = []
    before: State | None = None
    for version in table.model.promised():
        state = table.model.at(version)
        if not state.records_changes:
            before = None
            continue
        if before is not None and _is_like(before, state):
            found[-1] = (found[-1][0], version)
        else:
            found.append((version, version))
        before = state
    return found


def _is_like(one: State, other: State) -> bool:
    return one.columns == other.columns and one.partition_by == other.partition_by


def _moved(table: WrittenTable, first: int, last: int) -> set[str]:
    """Columns that are of partitions in some of these versions, the one before and the newest, not in all."""
    versions = {*range(max(first - 1, table.model.promised().start), last + 1), table.model.latest}
    partitions = [set(table.model.at(version).partition_by) for version in versions]
    return set.union(*partitions) - set.intersection(*partitions)


def _goes_on(peers: Peers, peer: str, table: WrittenTable, draw: Draw, path: Path) -> dict[str, Any]:
    """The peer appends, then deletes; we read what it left."""
    copy = table.copied(path)
    expected = table.state
    rows, added = table.rows_for_a_peer(draw)
    row_ids = row_ids_of(copy)
    try:
        unless_refused(lambda: peers.writers[peer](path, rows, None))
    except RefusalError as refusal:
        assert DeltaTable(path, clock=table.clock).version() == copy.version(), "it refused, and committed"
        return {"appended": 0, "deleted": 0, "refused": str(refusal)}
    expected = reads_on(table, path, expected.with_more(added), f"what {peer} appended", row_ids)
    if expected.append_only:
        return {"appended": len(added), "deleted": 0, "refused": "the table is append-only"}
    gone = {min(expected.rows), max(expected.rows)}
    predicate = f"{KEY} IN ({', '.join(map(str, sorted(gone)))})"
    try:
        unless_refused(lambda: peers.writers[peer](path, None, predicate))
    except RefusalError as refusal:
        return {"appended": len(added), "deleted": 0, "refused": str(refusal)}
    left = {key: row for key, row in expected.rows.items() if key not in gone}
    reads_on(table, path, expected.with_rows(left), f"what {peer} left", row_ids)
    return {"appended": len(added), "deleted": len(gone), "refused": None}


def reads_on(table: WrittenTable, path: Path, expected: State, what: str, row_ids: dict[int, int]) -> State:
    found = DeltaTable(path, clock=table.clock)
    expected = table.with_numbers(expected, found)
    for column in expected.columns:
        source = column.generated_from
        if source is not None:
            for key, row in expected.rows.items():
                if row.get(column.name) is None and row.get(source) is not None:
                    expected = expected.with_more({key: {**row, column.name: row[source] + 1}})
    _same(canonical_rows(found.to_pyarrow_table()), canonical_model(expected.visible()), what)
    assert found.snapshot.checksum_discrepancies == ()
    now = row_ids_of(found)
    for key, row_id in now.items():
        assert row_ids.setdefault(key, row_id) == row_id, f"{what}: row {key} has another id"
    assert len(set(row_ids.values())) == len(row_ids), f"{what}: two rows have one id"
    return expected


def row_ids_of(table: DeltaTable) -> dict[int, int]:
    if table.metadata().configuration.get("delta.enableRowTracking") != "true":
        return {}
    found = table.to_pyarrow_table([KEY], row_ids=True)
    return dict(zip(found.column(KEY).to_pylist(), found.column("_row_id").to_pylist(), strict=True))


def unless_refused(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except SparkErrors as error:
        condition = condition_of(error)
        if "RETENTION" in condition:
            raise  # the tables are old for it, which is no limit of what it does
        if (
            condition in _NEWEST_SCHEMA
            or _is_limit(condition.replace("_", " ").lower())
            or _is_limit(str(error).lower())
        ):
            raise RefusalError(condition) from error
        raise
    except Exception as error:
        text = str(error)
        if _NEGATIVE_DECIMAL.search(text):
            # Its own tables have no negative decimals in partitions, either.
            raise FaultError("it cannot make the name of a partition of a negative decimal") from error
        if not _is_limit(text.lower()):
            raise
        raise RefusalError(_PARTICULAR.sub("…", " ".join(text.split()))[:200]) from error


def _is_limit(text: str) -> bool:
    return _LIMIT.search(text) is not None
