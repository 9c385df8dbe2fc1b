"""`@task.delta_table` and `@task.deltaward`, as a task's process calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.decorators.delta_table import DeltaTableDecoratedOperator, delta_table_task
from delta_airflow.decorators.deltaward import DeltawardDecoratedOperator, deltaward_task
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.tables import create_table, open_table, recorded_work
from delta_core import DeltaTable
from delta_core.errors import ConcurrentAppendError, ConfigurationError, SchemaMismatchError
from tests.support.airflow import connection_json
from tests.support.cleared_tasks import Instance

pytestmark = pytest.mark.usefixtures("airflow_connection")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "lake" / "t"
    for number in (1, 2):
        peer_write(path, pa.table({"id": [number]}), mode="append")
    return path


def operator_of(call: Any) -> Any:
    return call.operator


def with_table(function: Any, table: Path, *args: Any, **arguments: Any) -> Any:
    """The task's operator, as the call in a DAG makes it."""
    given = arguments.pop("call", {})
    with DAG("d", schedule=None):
        return operator_of(delta_table_task(table_uri=str(table), **arguments)(function)(*args, **given))


def count(table: DeltaTable, at_least: int = 0, *, more: int = 0) -> int:
    return max(at_least, table.to_pyarrow_table().num_rows) + more


# ------------------------------------------------------------ @task.delta_table


def test_a_function_gets_the_table_and_its_own_arguments(table: Path) -> None:
    operator = with_table(count, table, 1, call={"more": 10})
    assert isinstance(operator, DeltaTableDecoratedOperator)
    assert operator.task_id == "count"
    assert operator.execute(Instance().context) == 12
    assert with_table(count, table, 5).execute(Instance().context) == 5


def test_a_version_can_be_asked_for(table: Path) -> None:
    assert with_table(count, table, version="0").execute(Instance().context) == 1
    assert with_table(count, table, version="None").execute(Instance().context) == 2


def test_a_function_may_ask_for_airflows_context(table: Path) -> None:
    def who(table: DeltaTable, *, ti: Any = None) -> str:
        return f"{ti.dag_id} {table.version()}"

    assert with_table(who, table).execute(Instance().context) == "d 1"


def test_an_operator_can_be_executed_again(table: Path) -> None:
    """As when it is copied for each try, and the table has moved on."""
    operator = with_table(count, table)
    assert operator.execute(Instance().context) == 2
    peer_write(table, pa.table({"id": [3]}), mode="append")
    assert operator.execute(Instance().context) == 3


def test_a_missing_table_fails_or_is_none(tmp_path: Path) -> None:
    def there(table: DeltaTable | None) -> bool:
        return table is not None

    missing = tmp_path / "lake" / "none"
    with pytest.raises(AirflowFailException, match="TABLE_NOT_FOUND"):
        with_table(there, missing).execute(Instance().context)
    assert with_table(there, missing, required="false").execute(Instance().context) is False


def test_roots_of_the_connection_are_checked(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_DELTAWARD_DEFAULT", connection_json(allowed_roots=[str(tmp_path / "other")])
    )
    with pytest.raises(AirflowFailException, match="allowed_roots"):
        with_table(count, table).execute(Instance().context)
    monkeypatch.setenv(
        "AIRFLOW_CONN_DELTAWARD_DEFAULT", connection_json(allowed_roots=[str(tmp_path / "lake")])
    )
    assert with_table(count, table).execute(Instance().context) == 2
    with pytest.raises(AirflowFailException, match="allowed_roots"):
        with_table(count, table, allowed_root_uris=[str(tmp_path / "other")]).execute(Instance().context)


def test_an_error_of_the_function_is_retried_only_when_it_can_pass(table: Path) -> None:
    def conflict(table: DeltaTable) -> None:
        raise ConcurrentAppendError("another writer won")

    def bad(table: DeltaTable) -> None:
        raise SchemaMismatchError("extra column x")

    with pytest.raises(ConcurrentAppendError):
        with_table(conflict, table).execute(Instance().context)
    with pytest.raises(AirflowFailException, match="SCHEMA_MISMATCH"):
        with_table(bad, table).execute(Instance().context)


def test_a_call_that_does_not_fit_fails_when_the_dag_is_parsed(table: Path) -> None:
    with pytest.raises(TypeError):
        with_table(count, table, call={"unknown": 1})

    def nothing() -> None: ...

    def only_named(*, table: DeltaTable) -> None: ...

    for function in (nothing, only_named):
        with pytest.raises(ConfigurationError, match="takes no table"):
            with_table(function, table)


def test_its_arguments_are_templated(table: Path) -> None:
    operator = with_table(count, Path("/x/{{ name }}"), conn_id="{{ conn }}", version="{{ version }}")
    operator.render_template_fields({"name": "t", "conn": "c", "version": 3})
    assert (operator.table_uri, operator.conn_id, operator.version) == ("/x/t", "c", "3")


def test_it_is_mapped_over_arguments_and_tables(table: Path) -> None:
    with DAG("d", schedule=None):
        mapped: Any = delta_table_task(table_uri=str(table))(count).expand(at_least=[1, 9])
    assert mapped.operator.op_kwargs_expand_input.value == {"at_least": [1, 9]}


def test_tables_are_created_and_opened_through_a_connection(tmp_path: Path) -> None:
    where = tmp_path / "lake" / "new"
    created = create_table(DeltawardHook(), str(where), pa.schema([("id", pa.int64())]))
    assert created.version() == 0
    assert open_table(DeltawardHook(), str(where)).version() == 0
    assert recorded_work(DeltawardHook(), str(where), "orders") is None
    with pytest.raises(ConfigurationError, match="relative"):
        create_table(DeltawardHook(), "new", pa.schema([("id", pa.int64())]))


# ------------------------------------------------------------ @task.deltaward


def job(function: Any, table: Path, *args: Any, **arguments: Any) -> Any:
    with DAG("d", schedule=None):
        decorate = deltaward_task(table_uri=str(table), **{"kind": "optimize", **arguments})
        return operator_of(decorate(function)(*args))


def test_a_function_gives_the_parameters_of_a_job(table: Path) -> None:
    def compact(size: int, *, ti: Any = None) -> dict[str, Any]:
        return {"target_size_bytes": size, "dry_run": ti.try_number > 1}

    operator = job(compact, table, 1 << 20)
    assert isinstance(operator, DeltawardDecoratedOperator)
    planned = operator.execute(Instance().retry().context)
    assert (planned["commits"], planned["predicted"]["files_removed"]) == ([], 2)
    assert operator.execute(Instance().context)["commits"] == [2]
    assert len(PeerTable(table).file_uris()) == 1


def test_no_parameters_skip_the_task(table: Path) -> None:
    with pytest.raises(AirflowSkipException, match="nothing to do"):
        job(lambda: None, table, task_id="t").execute(Instance().context)
    with pytest.raises(AirflowFailException, match="returned a list"):
        job(lambda: ["x"], table, task_id="t").execute(Instance().context)
    assert PeerTable(table).version() == 1


def test_parameters_that_a_kind_does_not_know_fail_for_good(table: Path) -> None:
    with pytest.raises(AirflowFailException, match=r"params\.no_such is unknown"):
        job(lambda: {"no_such": 1}, table, task_id="t").execute(Instance().context)


def test_a_job_of_a_function_has_the_operators_arguments(table: Path) -> None:
    operator = job(lambda: {}, table, task_id="t", kind="{{ kind }}", work_name="{{ kind }} once")
    operator.render_template_fields({"kind": "describe"})
    assert operator.execute(Instance().context)["output"]["num_files"] == 2
    assert operator.work_name == "describe once"
