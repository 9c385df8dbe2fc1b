"""Plain values of Python are taken: NumPy's scalars, flags and numbers as settings, handles by pickle."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, GroupCommit, Scan, convert_to_deltalake, write_deltalake
from delta_core.errors import ConfigurationError, ExpressionError, InvalidTablePropertyError
from delta_core.plain_values import plain, value_string
from delta_core.storage.open import open_store

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "x": [1.5, 2.5],
        "on": [True, False],
        "at": pa.array([None, None], pa.timestamp("us", "UTC")),
        "day": pa.array([None, None], pa.date32()),
        "xs": [[1.0], [2.0]],
    }
)
S3 = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://store:9000"}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", ROWS)
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize(
    ("value", "own"),
    [
        (np.int64(1), 1),
        (np.float32(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.bytes_(b"x"), b"x"),
        (np.array(3), 3),
        (np.datetime64("2026-01-31"), dt.date(2026, 1, 31)),
        (np.datetime64("2026-01-31T12:00:00.000001000"), dt.datetime(2026, 1, 31, 12, 0, 0, 1)),
        (np.datetime64("NaT"), None),
        (np.timedelta64(5000, "ns"), dt.timedelta(microseconds=5)),
        (1, 1),
        ("x", "x"),
    ],
)
def test_a_scalar_of_numpy_is_one_of_python(value: object, own: object) -> None:
    assert plain(value) == own
    assert type(plain(value)) is type(own)


def test_what_python_cannot_say_stays() -> None:
    for value in (np.datetime64("2026-01-31T12:00:00.000000001"), np.array([1]), np.array([[1]])):
        assert plain(value) is value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (False, "false"), (np.bool_(False), "false"), (10, "10"), (np.int32(10), "10"),
        (1.5, "1.5"), (Decimal("1E+3"), "1000"), ("x", "x"), (np.str_("x"), "x"),
        (None, None), (b"x", None), ([1], None), (float("nan"), None), (float("inf"), None),
        (Decimal("NaN"), None), (object(), None),
    ],
)  # fmt: skip
def test_a_setting_is_text_a_number_or_a_flag(value: object, text: str | None) -> None:
    assert value_string(value) == text


def test_a_number_that_python_does_not_write_is_no_setting() -> None:
    assert value_string(10**400) == "1" + 400 * "0"
    assert value_string(10**5000) is None


def test_properties_take_flags_and_numbers(table: DeltaTable, tmp_path: Path) -> None:
    wanted: Any = {"delta.appendOnly": True, "delta.checkpointInterval": np.int64(7), "owner": 3}
    strings = {"delta.appendOnly": "true", "delta.checkpointInterval": "7", "owner": "3"}
    table.alter.set_properties(wanted)
    assert dict(table.metadata().configuration) == strings
    parameters = table.history(1)[0].commit_info.operation_parameters
    assert parameters is not None
    assert '"7"' in parameters["properties"]
    write_deltalake(tmp_path / "new", ROWS, configuration=wanted)
    assert dict(DeltaTable(tmp_path / "new").metadata().configuration) == strings
    pa.parquet.write_table(ROWS, tmp_path / "files.parquet")
    (tmp_path / "files").mkdir()
    (tmp_path / "files.parquet").rename(tmp_path / "files" / "a.parquet")
    convert_to_deltalake(tmp_path / "files", configuration=wanted)
    created = DeltaTable.create(tmp_path / "created", ROWS.schema, configuration=wanted)
    for made in (DeltaTable(tmp_path / "files"), created):
        assert dict(made.metadata().configuration) == strings


@pytest.mark.parametrize("value", [None, b"true", ["true"], float("nan"), {"a": 1}])
def test_a_property_of_another_kind_is_refused(table: DeltaTable, value: Any) -> None:
    with pytest.raises(InvalidTablePropertyError, match="strings, numbers, True or False"):
        table.alter.set_properties({"mine": value})


def test_store_options_take_flags_and_numbers() -> None:
    options: Any = {**S3, "AWS_ALLOW_HTTP": np.bool_(True), "aws_skip_signature": True}
    assert open_store("s3://bucket/t", storage_options=options).uri == "s3://bucket/t"
    wrong: tuple[Any, ...] = ({"AWS_REGION": None}, {"AWS_REGION": b"secret"}, {1: "x"}, [("a", "b")], "x")
    for given in wrong:
        with pytest.raises(ConfigurationError) as caught:
            open_store("s3://bucket/t", storage_options=given)
        assert "secret" not in str(caught.value)


def test_values_of_numpy_are_assigned(table: DeltaTable) -> None:
    values: dict[Any, Any] = {
        "id": np.int64(7),
        "x": np.float64(0.5),
        "on": np.bool_(False),
        "at": np.datetime64("2026-01-31T12:00:00.000001000"),
        "day": np.datetime64("2026-01-31"),
        "xs": [np.float32(0.5), np.int8(2)],
    }
    table.update(new_values=values, predicate="id = 1")
    assert table.to_pyarrow_table(filters="id = 7").to_pylist() == [
        {
            "id": 7,
            "x": 0.5,
            "on": False,
            "at": dt.datetime(2026, 1, 31, 12, 0, 0, 1, dt.UTC),
            "day": dt.date(2026, 1, 31),
            "xs": [0.5, 2.0],
        }
    ]
    with pytest.raises(ExpressionError, match="cannot be assigned to at"):
        table.update(new_values={"at": np.datetime64("2026-01-31T12:00:00.000000001")})


def test_numbers_of_numpy_are_arguments(table: DeltaTable) -> None:
    table.load_as_version(np.int64(0))  # type: ignore[arg-type]
    assert len(table.history(np.int32(1))) == 1  # type: ignore[arg-type]
    write_deltalake(table, ROWS, mode="append", txn=("job", np.int64(3)))  # type: ignore[arg-type]
    assert table.transactions()["job"].version == 3
    flag: Any = np.bool_(True)
    assert table.vacuum(np.float64(200.0), dry_run=flag) == []


@pytest.mark.parametrize("value", [None, "False", 0, 1, [], np.int64(0)])
def test_a_flag_is_true_or_false(table: DeltaTable, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"The dry_run of DeltaTable\.vacuum\(\) cannot be"):
        table.vacuum(dry_run=value)


def test_a_call_that_python_itself_refuses_is_not_ours() -> None:
    with pytest.raises(TypeError, match="no_such_argument"):
        DeltaTable("/t", no_such_argument=1)  # type: ignore[call-arg]


def test_a_handle_goes_to_another_process(table: DeltaTable) -> None:
    first = pickle.loads(pickle.dumps(table))
    table.delete("id = 1")
    assert (first.version(), table.version()) == (0, 1)
    assert first.to_pyarrow_table().num_rows == 2
    assert copy.copy(table).version() == 1
    first.update_incremental()
    assert first.version() == 1


def test_a_handle_with_a_secret_stays(table: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_options", {"AWS_REGION": "x", "aws_secret_access_key": "hunter2"})
    with pytest.raises(ConfigurationError, match="'aws_secret_access_key' cannot be pickled") as caught:
        pickle.dumps(table)
    assert table.table_uri in caught.value.fix
    assert "hunter2" not in str(caught.value)
    monkeypatch.setattr(table, "_options", {"AWS_REGION": "x"})
    assert b"AWS_REGION" in pickle.dumps(table)


def test_what_holds_locks_says_what_to_pickle_instead(table: DeltaTable) -> None:
    with GroupCommit(table) as group:
        for found in (table.snapshot, Scan(table.snapshot), table.alter, table.optimize, group):
            with pytest.raises(ConfigurationError, match="cannot be pickled"):
                pickle.dumps(found)
