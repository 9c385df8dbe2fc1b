"""Defaults, identity values and generated columns: what happens to columns that a caller leaves out."""

from __future__ import annotations

import datetime as dt
import json
import threading
from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core.data.row_batch import RowBatch
from delta_core.data.row_pipeline import RowPipeline
from delta_core.data.steps.identity import IdentityStep, with_high_water_marks
from delta_core.data.write_plan import WritePlan
from delta_core.errors import (
    ConstraintViolationError,
    ExpressionError,
    InvalidTableError,
    SchemaMismatchError,
)
from delta_core.schema.json import schema_from_json
from tests.support.log_builder import NOW_MS
from tests.support.planned_tables import PlannedTable, column, mapped, struct

NOW = dt.datetime.fromtimestamp(NOW_MS / 1000 + 1000, dt.UTC)
DEFAULTS = ["allowColumnDefaults"]
IDENTITY = ["identityColumns"]
GENERATED = ["generatedColumns"]


# ------------------------------------------------------------ defaults


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("long", "42", 42),
        ("byte", "-5", -5),
        ("double", "1", 1.0),
        ("decimal(10,2)", "1.5", Decimal("1.50")),
        ("decimal(10,2)", "7", Decimal("7.00")),
        ("string", "'it\\'s'", "it's"),
        ("string", "concat('a', upper('b'))", "aB"),
        ("string", "5", "5"),
        ("boolean", "true", True),
        ("date", "DATE '2020-02-29'", dt.date(2020, 2, 29)),
        ("date", "current_date()", NOW.date()),
        ("date", "current_date", NOW.date()),
        ("timestamp", "current_timestamp()", NOW),
        ("timestamp", "now()", NOW),
        ("timestamp_ntz", "localtimestamp()", NOW.replace(tzinfo=None)),
        ("timestamp", "current_timestamp() + INTERVAL 1 DAY", NOW + dt.timedelta(days=1)),
        ("date", "current_timestamp()", NOW.date()),
        ("long", "NULL", None),
        ("integer", "CAST(NULL AS INT)", None),
        ("binary", "X'01FF'", b"\x01\xff"),
        ("variant", "NULL", None),
        ({"type": "array", "elementType": "long", "containsNull": True}, "NULL", None),
    ],
)
def test_defaults_of_absent_columns(tmp_path, kind, text, expected):
    table = PlannedTable(
        tmp_path,
        column("k", "long"),
        column("v", kind, CURRENT_DEFAULT=text),
        features=[*DEFAULTS, "variantType"],
    )
    table.write(pa.table({"K": [1, 2]}))
    assert table.rows() == [{"k": 1, "v": expected}, {"k": 2, "v": expected}]


def test_null_that_was_given_stays_null_and_must_be_allowed(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("a", "long", CURRENT_DEFAULT="1"),
        column("b", "long", nullable=False, CURRENT_DEFAULT="2"),
        features=DEFAULTS,
    )
    table.write(pa.table({"A": pa.array([None, 5], pa.int64())}))
    assert table.rows() == [{"a": None, "b": 2}, {"a": 5, "b": 2}]
    with pytest.raises(ConstraintViolationError, match="column b is null in 1 of 2 rows"):
        table.write(pa.table({"b": pa.array([None, 5], pa.int64())}))
    assert len(table.files()) == 1


def test_a_default_of_null_does_not_lift_not_null(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("a", "long"),
        column("b", "long", nullable=False, CURRENT_DEFAULT="NULL"),
        features=DEFAULTS,
    )
    with pytest.raises(ConstraintViolationError, match="column b is null in 1 of 1 rows"):
        table.write(pa.table({"a": [1]}))


def test_without_the_feature_there_are_no_defaults(tmp_path):
    table = PlannedTable(tmp_path, column("a", "long"), column("b", "long", CURRENT_DEFAULT="2"))
    table.write(pa.table({"a": [1]}))
    assert table.rows() == [{"a": 1, "b": None}]


@pytest.mark.parametrize(
    ("kind", "text", "cause"),
    [
        ("byte", "1000", "1000"),
        ("long", "'x'", "cannot be cast"),
        ("long", "a + 1", "refers to the column a"),
        ("string", "uuid()", "does not depend on the row alone"),
        ("variant", "5", "Only NULL is supported"),
        ("long", "(SELECT 1)", "subquery"),
    ],
)
def test_defaults_that_cannot_be_worked_out(tmp_path, kind, text, cause):
    table = PlannedTable(
        tmp_path, column("a", "long"), column("b", kind, CURRENT_DEFAULT=text), features=DEFAULTS
    )
    with pytest.raises(ExpressionError, match="The default of column b") as caught:
        table.write(pa.table({"a": [1]}))
    assert cause in str(caught.value)
    assert table.files() == []


def test_one_statement_has_one_time(tmp_path):
    plan = PlannedTable(
        tmp_path, column("a", "long"), column("t", "timestamp", CURRENT_DEFAULT="now()"), features=DEFAULTS
    ).plan
    pipeline = RowPipeline(plan, now_us=1)
    rows = pa.table({"a": list(range(10))}).to_reader(max_chunksize=3)
    assert set(pipeline.stream(rows).read_all().column("t").to_pylist()) == {
        dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)
    }


# ------------------------------------------------------------ identity values


def identity(name="i", start=1, step=1, mark=None, explicit=None, **more):
    metadata = {"delta.identity.start": start, "delta.identity.step": step}
    if mark is not None:
        metadata["delta.identity.highWaterMark"] = mark
    if explicit is not None:
        metadata["delta.identity.allowExplicitInsert"] = explicit
    return column(name, "long", **more) | {"metadata": metadata}


@pytest.mark.parametrize(
    ("start", "step", "mark", "first"),
    [
        (1, 1, None, 1),
        (5, 10, None, 5),
        (5, 10, 5, 15),
        (5, 10, 25, 35),
        (5, 10, 26, 35),
        (5, 10, 34, 35),
        (5, 10, -100, 5),
        (5, 10, 4, 5),
        (-5, -10, None, -5),
        (-5, -10, -5, -15),
        (-5, -10, -16, -25),
        (-5, -10, 100, -5),
        (2**63 - 4, 1, None, 2**63 - 4),
        (-(2**63), 2**62, None, -(2**63)),
    ],
)
def test_identity_values_continue_beyond_the_mark(tmp_path, start, step, mark, first):
    table = PlannedTable(
        tmp_path, identity(start=start, step=step, mark=mark), column("a", "long"), features=IDENTITY
    )
    rows = pa.table({"a": [7, 8, 9]}).to_reader(max_chunksize=2)
    written = table.write(rows)
    expected = [first + k * step for k in range(3)]
    assert [row["i"] for row in table.rows()] == expected
    assert written.high_water_marks == {"i": expected[-1]}


@pytest.mark.parametrize(
    ("start", "step", "mark"), [(2**63 - 2, 1, None), (1, 2**62, 1), (-5, -(2**62), None)]
)
def test_identity_values_run_out(tmp_path, start, step, mark):
    table = PlannedTable(
        tmp_path, identity(start=start, step=step, mark=mark), column("a", "long"), features=IDENTITY
    )
    with pytest.raises(ConstraintViolationError, match="too few values left for 3 rows"):
        table.write(pa.table({"a": [7, 8, 9]}))
    assert table.files() == []


@pytest.mark.parametrize("explicit", [None, False, "false"])
def test_identity_values_cannot_be_given(tmp_path, explicit):
    table = PlannedTable(tmp_path, identity(explicit=explicit), column("a", "long"), features=IDENTITY)
    with pytest.raises(SchemaMismatchError, match="identity column i are not allowed"):
        table.write(pa.table({"a": [7], "I": [1]}))


@pytest.mark.parametrize("explicit", [True, "true"])
def test_given_identity_values_stay_and_move_no_mark(tmp_path, explicit):
    table = PlannedTable(
        tmp_path, identity(explicit=explicit, mark=3), column("a", "long"), features=IDENTITY
    )
    written = table.write(pa.table({"a": [7, 8], "i": [100, 1]}))
    assert written.high_water_marks == {}
    assert [row["i"] for row in table.rows()] == [100, 1]
    assert table.write(pa.table({"a": [9]})).high_water_marks == {"i": 4}


def test_no_rows_move_no_mark(tmp_path):
    table = PlannedTable(tmp_path, identity(), column("a", "long"), features=IDENTITY)
    assert table.write(pa.table({"a": pa.array([], pa.int64())})).high_water_marks == {}


def test_marks_go_into_the_schema_and_never_back():
    fields = [identity("up", mark=10), identity("down", start=-1, step=-1, mark=-10)]
    schema = schema_from_json(json.dumps(struct(*fields)))
    moved = with_high_water_marks(schema, {"up": 12, "down": -12})
    assert [f.metadata["delta.identity.highWaterMark"] for f in moved] == [12, -12]
    assert with_high_water_marks(moved, {"up": 11, "down": -11}) == moved
    assert with_high_water_marks(schema, {}) == schema


def test_threads_get_different_numbers(tmp_path):
    step = IdentityStep(PlannedTable(tmp_path, identity(), features=IDENTITY).plan)
    found, barrier = [], threading.Barrier(4)

    def reserve():
        barrier.wait()
        found.extend(value for _ in range(50) for value in step.reserve("i", 3).values().to_pylist())

    threads = [threading.Thread(target=reserve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 601))
    assert step.high_water_marks == {"i": 600}


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        ("long", {"delta.identity.start": 1, "delta.identity.step": 0}),
        ("long", {"delta.identity.start": 1}),
        ("long", {"delta.identity.start": "x", "delta.identity.step": 1}),
        ("long", {"delta.identity.start": 2**63, "delta.identity.step": 1}),
        ("string", {"delta.identity.start": 1, "delta.identity.step": 1}),
        ("long", {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.highWaterMark": 1.5}),
    ],
)
def test_broken_identity_columns(tmp_path, kind, metadata):
    table = PlannedTable(tmp_path, column("i", kind) | {"metadata": metadata}, features=IDENTITY)
    with pytest.raises(
        InvalidTableError, match="The table cannot be written: Column i cannot be an identity column"
    ):
        WritePlan.of(table.protocol, table.metadata)


# ------------------------------------------------------------ generated columns


def generated(name, kind, text, **more):
    return column(name, kind, **more) | {"metadata": {"delta.generationExpression": text}}


def test_generated_columns_are_computed_where_absent(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("t", "timestamp"),
        generated("day", "date", "CAST(t AS DATE)", nullable=False),
        generated("y", "short", "year(t)"),
        generated("label", "string", "substring(s, 1, 0)"),
        column("s", "string"),
        features=GENERATED,
        partition_columns=["day", "label"],
    )
    times = [dt.datetime(2020, 1, 31, 23, tzinfo=dt.UTC), dt.datetime(1960, 2, 1, tzinfo=dt.UTC)]
    written = table.write(pa.table({"t": times, "s": ["a", None]}))
    rows = sorted(table.rows(), key=lambda row: row["y"])
    assert [row["day"] for row in rows] == [dt.date(1960, 2, 1), dt.date(2020, 1, 31)]
    assert [row["y"] for row in rows] == [1960, 2020]
    assert [row["label"] for row in rows] == [None, None]
    assert {add.partition_values["day"] for add in written.adds} == {"1960-02-01", "2020-01-31"}
    with pytest.raises(ConstraintViolationError, match="column day is null in 1 of 1 rows"):
        table.write(pa.table({"s": ["a"]}))


@pytest.mark.parametrize(
    ("given", "row"),
    [([2, 4], None), ([2, None], 1), ([1, 4], 0), ([3, 4], 0)],
)
def test_given_values_of_generated_columns_are_checked(tmp_path, given, row):
    table = PlannedTable(tmp_path, column("a", "long"), generated("b", "long", "a * 2"), features=GENERATED)
    rows = pa.table({"a": [1, 2], "b": pa.array(given, pa.int64())})
    if row is None:
        table.write(rows)
        assert table.rows() == [{"a": 1, "b": 2}, {"a": 2, "b": 4}]
        return
    with pytest.raises(ConstraintViolationError, match=r"Generated column b \(a \* 2\)") as caught:
        table.write(rows)
    assert f"row {row}: " in str(caught.value)


def test_null_is_checked_null_safely(tmp_path):
    table = PlannedTable(tmp_path, column("a", "long"), generated("b", "long", "a * 2"), features=GENERATED)
    nothing = pa.array([None], pa.int64())
    table.write(pa.table({"a": nothing, "b": nothing}))
    with pytest.raises(ConstraintViolationError):
        table.write(pa.table({"a": nothing, "b": [0]}))


def test_generated_from_defaults_and_identity_values(tmp_path):
    table = PlannedTable(
        tmp_path,
        generated("g", "string", "concat(d, CAST(i AS STRING))"),
        column("d", "string", CURRENT_DEFAULT="'x'"),
        identity(start=5),
        column("a", "long"),
        features=[*DEFAULTS, *IDENTITY, *GENERATED],
        configuration={"delta.constraints.c": "g = 'x5'"},
    )
    table.write(pa.table({"a": [1]}))
    assert table.rows() == [{"g": "x5", "d": "x", "i": 5, "a": 1}]
    assert table.plan.steps == ("align", "defaults", "identity", "generated", "constraints", "physical")
    with pytest.raises(ConstraintViolationError, match="constraint c"):
        table.write(pa.table({"a": [1, 2]}))


def test_updated_rows_are_computed_anew_and_keep_their_numbers(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("a", "long"),
        generated("b", "long", "a * 2"),
        identity(mark=9),
        features=[*IDENTITY, *GENERATED],
    )
    pipeline = RowPipeline(table.plan, now_us=0)
    columns = pa.table({"a": [5, 6], "b": [2, 4], "i": [1, 2]})
    updated = pipeline.updated_rows(RowBatch(columns=columns, absent=frozenset({"b"})))
    assert updated.columns.to_pydict() == {"a": [5, 6], "b": [10, 12], "i": [1, 2]}
    with pytest.raises(ConstraintViolationError, match="Generated column b"):
        pipeline.updated_rows(RowBatch(columns=columns))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a + h", "contains the generated column h"),
        ("no_such(a)", "The function no_such is not supported"),
        ("current_timestamp()", "present time"),
        ("missing", "does not exist"),
    ],
)
def test_expressions_that_cannot_generate(tmp_path, text, cause):
    table = PlannedTable(
        tmp_path,
        column("a", "long"),
        generated("h", "long", "a"),
        generated("g", "long", text),
        features=GENERATED,
    )
    with pytest.raises(ExpressionError, match="Column g cannot be generated") as caught:
        table.write(pa.table({"a": [1]}))
    assert cause in str(caught.value)


def test_decimals_fit_the_generated_column_or_fail(tmp_path):
    table = PlannedTable(
        tmp_path,
        column("a", "decimal(20,2)"),
        generated("b", "decimal(38,4)", "a * a"),
        generated("c", "decimal(5,1)", "a"),
        generated("n", "long", "NULL"),
        features=GENERATED,
    )
    table.write(pa.table({"a": pa.array([Decimal("1.25")], pa.decimal128(20, 2))}))
    assert table.rows()[0] == {"a": Decimal("1.25"), "b": Decimal("1.5625"), "c": Decimal("1.3"), "n": None}
    for text in ("99999.00", "9" * 18 + ".00"):
        with pytest.raises(ExpressionError):
            table.write(pa.table({"a": pa.array([Decimal(text)], pa.decimal128(20, 2))}))
    assert len(table.files()) == 1


def test_no_expression_gives_a_variant(tmp_path):
    table = PlannedTable(tmp_path, column("a", "variant"), generated("g", "variant", "a"), features=GENERATED)
    with pytest.raises(
        InvalidTableError, match="The table cannot be written: Column g cannot be a generated column"
    ):
        WritePlan.of(table.protocol, table.metadata)


def test_filled_columns_of_a_mapped_table(tmp_path):
    default = mapped("d", "long", 2, "P2")
    default["metadata"]["CURRENT_DEFAULT"] = "4"
    table = PlannedTable(
        tmp_path,
        mapped("a", "long", 1, "P1"),
        default,
        features=[*DEFAULTS, "columnMapping"],
        configuration={"delta.columnMapping.mode": "id"},
        partition_columns=["d"],
    )
    written = table.write(pa.table({"a": [1]}))
    assert written.adds[0].partition_values == {"P2": "4"}
    assert table.rows() == [{"a": 1, "d": 4}]
