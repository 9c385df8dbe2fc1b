"""`spark_jobs.sql`: statements have their effect on the table, and results have delta-spark's columns."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import spark_jobs
from delta_core import DeltaTable
from delta_core.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidSqlError,
    PathEscapeError,
    RetentionTooShortError,
    SchemaMismatchError,
    SqlStatementError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedSqlError,
)
from delta_core.jobs import (
    IdempotencyKey,
    JobContext,
    JobRegistry,
    JobResult,
    JobSpec,
    JobStatus,
    TableRef,
    run_job,
)
from spark_jobs import sql_command
from spark_jobs.job_kinds import SQL
from spark_jobs.spark_executor import SparkExecutor
from tests.support.spark import collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rows_of(uri: Path | str) -> list[dict[str, Any]]:
    """The rows of a table as `delta_core` reads them, sorted by their text."""
    rows: list[dict[str, Any]] = DeltaTable(str(uri)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=repr)


FEATURES = (
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true', "
    "'delta.feature.allowColumnDefaults' = 'supported')"
)


class Sql:
    """Statements in one session, with the tables `{t}` and `{u}` in a folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.uri = str(folder / "a table")

    def __call__(self, text: str, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        return collected(self.frame(text, *args, **kwargs))

    def frame(self, text: str, *args: Any, **kwargs: Any) -> Any:
        named = text.replace("{t}", f"delta.`{self.uri}`").replace("{u}", f"delta.`{self.folder / 'u'}`")
        return spark_jobs.sql(self.spark, named.replace("{folder}", str(self.folder)), *args, **kwargs)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.uri)


@pytest.fixture(name="sql")
def fixture_sql(spark: SparkSession, tmp_path: Path) -> Sql:
    found = Sql(spark, tmp_path)
    columns = "id BIGINT, name STRING DEFAULT 'none', d DATE"
    found(f"CREATE TABLE {{t}} ({columns}) USING delta PARTITIONED BY (d) {FEATURES}")
    found(
        "INSERT INTO {t} VALUES (1, 'a', DATE'2024-01-01'), (2, :name, DATE'2024-01-02'), "
        "(3, NULL, DATE'2024-01-03')",
        name="it's {x}",
    )
    return found


@pytest.fixture(name="names")
def fixture_names(sql: Sql) -> Iterator[Sql]:
    sql("CREATE DATABASE IF NOT EXISTS sql_test")
    yield sql
    sql.spark.sql("DROP DATABASE sql_test CASCADE")


def ids(rows: list[dict[str, Any]]) -> list[Any]:
    return sorted(row["id"] for row in rows)


def test_rows_are_inserted_changed_and_read_at_any_version(sql: Sql) -> None:
    assert sql("SELECT name FROM {t} WHERE name = :p", p="it's {x}") == [{"name": "it's {x}"}]
    assert sql("SELECT name FROM {t} WHERE id = ?", [1]) == [{"name": "a"}]
    sql("INSERT INTO {t} (d, id) VALUES (DATE'2024-01-03', 4)")
    sql("INSERT INTO {t} BY NAME SELECT 5 AS id, DATE'2024-01-05' AS d")
    assert sql("DELETE FROM {t} WHERE id = :id", id=1) == [{"num_affected_rows": 1}]
    assert sql("UPDATE {t} x SET x.name = concat(:p, name) WHERE x.id = 2", p="'{y}") == [
        {"num_affected_rows": 1}
    ]
    merged = sql(
        "MERGE INTO {t} t USING (SELECT id, 'new' AS name, d FROM {t} VERSION AS OF 1 WHERE id < 3 UNION ALL "
        "SELECT 9, 'nine', DATE'2024-01-09') s ON t.id = s.id AND t.d >= :day "
        "WHEN MATCHED THEN UPDATE SET t.name = s.name "
        "WHEN NOT MATCHED AND s.id = 9 THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE",
        day=dt.date(2020, 1, 1),
    )
    assert merged == [
        {"num_affected_rows": 3, "num_updated_rows": 1, "num_deleted_rows": 1, "num_inserted_rows": 1}
    ]
    found = {row["id"]: row["name"] for row in sql("SELECT * FROM {t}")}
    assert found == {2: "new", 3: None, 5: "none", 9: "nine"}
    assert found == {row["id"]: row["name"] for row in rows_of(sql.uri)}
    assert ids(sql("SELECT x.id FROM {t}@v1 AS x JOIN {t} VERSION AS OF 2 y ON x.id = y.id")) == [1, 2, 3]
    changes = sql(
        "SELECT _change_type AS kind, count(*) AS n FROM table_changes(:t, 4, 4) GROUP BY 1",
        t=f"delta.`{sql.uri}`",
    )
    assert {row["kind"]: row["n"] for row in changes} == {"delete": 1}
    operations = [row["operation"] for row in sql.frame("DESCRIBE HISTORY {t}").collect()]
    assert operations == ["MERGE", "UPDATE", "DELETE", "WRITE", "WRITE", "WRITE", "CREATE TABLE"]


def test_rows_of_partitions_and_conditions_are_replaced(sql: Sql) -> None:
    sql("INSERT OVERWRITE {t} PARTITION (d = DATE'2024-01-01') (id, name) VALUES (7, 'seven')")
    assert ids(sql("SELECT * FROM {t}")) == [2, 3, 7]
    sql("INSERT OVERWRITE {t} PARTITION (d = DATE'2024-01-01') IF NOT EXISTS SELECT 8, 'eight'")
    assert ids(sql("SELECT * FROM {t}")) == [2, 3, 7]
    sql(
        "INSERT INTO {t} REPLACE WHERE d >= :d SELECT id + 10, name, d FROM {t} WHERE d > :d - 1",
        d=dt.date(2024, 1, 2),
    )
    assert ids(sql("SELECT * FROM {t}")) == [7, 12, 13]
    sql("INSERT OVERWRITE {t} TABLE {t}")
    assert ids(sql("SELECT * FROM {t}")) == [7, 12, 13]
    sql("INSERT INTO {t} (id) VALUES (20)")
    sql("INSERT OVERWRITE {t} PARTITION (d = NULL) (id) VALUES (21)")
    assert ids(sql("SELECT * FROM {t}")) == [7, 12, 13, 21]
    sql("TRUNCATE TABLE {t}")
    assert sql("SELECT * FROM {t}") == []


def test_values_get_the_types_of_their_columns_or_are_refused(sql: Sql) -> None:
    sql("INSERT INTO {t} VALUES (4.0, 5, TIMESTAMP'2024-01-03 01:00:00')")
    assert {"id": 4, "name": "5", "d": dt.date(2024, 1, 3)} in rows_of(sql.uri)
    with pytest.raises(SchemaMismatchError, match="CAST"):
        sql("INSERT INTO {t} (id) VALUES ('x')")
    with pytest.raises(DeltaError, match="does not fit the column id"):
        sql("INSERT INTO {t} (id) VALUES (1e30)")
    with pytest.raises(SchemaMismatchError, match="INSERT needs 3"):
        sql("INSERT INTO {t} VALUES (1, 'a')")
    with pytest.raises(SchemaMismatchError, match="no column 'x'"):
        sql("INSERT INTO {t} (x) VALUES (1)")
    assert sql.table.version() == 2
    sql("INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 9 AS id, 1.5D AS extra")
    assert {row["extra"] for row in rows_of(sql.uri)} == {None, 1.5}


def test_a_definition_changes_step_by_step(sql: Sql) -> None:
    for change in (
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')",
        "SET TBLPROPERTIES ('k' = 'v')",
        "ADD COLUMNS (n INT COMMENT 'number' FIRST, s STRUCT<a: INT>)",
        "ADD COLUMN s.b STRING",
        "ALTER COLUMN n TYPE BIGINT",
        "ALTER COLUMN n COMMENT 'a number'",
        "ALTER COLUMN n AFTER id",
        "ALTER COLUMN n SET DEFAULT 5",
        "RENAME COLUMN name TO title",
        "ADD CONSTRAINT positive CHECK (id > 0)",
        "UNSET TBLPROPERTIES IF EXISTS ('k', 'other')",
        "DROP COLUMNS IF EXISTS (s, nothing)",
    ):
        sql("ALTER TABLE {t} " + change)
    sql("COMMENT ON TABLE {t} IS 'all rows'")
    schema = sql.table.schema()
    assert [field.name for field in schema.fields] == ["id", "n", "title", "d"]
    assert str(schema.fields[1].data_type) == "long"
    assert sql.table.metadata().description == "all rows"
    assert "k" not in sql.table.metadata().configuration
    with pytest.raises(ConstraintViolationError, match="positive"):
        sql("INSERT INTO {t} (id) VALUES (-1)")
    sql("ALTER TABLE {t} DROP CONSTRAINT positive")
    sql("INSERT INTO {t} (id) VALUES (-1)")
    assert {"id": -1, "n": 5, "title": "none", "d": None} in sql("SELECT * FROM {t}")


def test_a_table_is_shown_as_it_is_and_can_be_created_again(sql: Sql) -> None:
    described = sql.frame("DESCRIBE {t}").collect()
    assert [row["col_name"] for row in described][:4] == ["id", "name", "d", "# Partition Information"]
    assert "Location" in [row["col_name"] for row in sql.frame("DESCRIBE EXTENDED {t}").collect()]
    assert sql.frame("DESCRIBE {t} name").collect()[1]["info_value"] == "string"
    assert [row["col_name"] for row in sql.frame("SHOW COLUMNS IN {t}").collect()] == ["id", "name", "d"]
    assert len(sql("SHOW PARTITIONS {t}")) == 3
    assert sql("SHOW TBLPROPERTIES {t} ('delta.enableDeletionVectors')")[0]["value"] == "true"
    assert sql("DESCRIBE DETAIL {t}")[0]["numFiles"] == 3
    statement = sql("SHOW CREATE TABLE {t}")[0]["createtab_stmt"]
    spark_jobs.sql(sql.spark, statement.replace("a table", "again").replace("a%20table", "again"))
    again = DeltaTable(str(sql.folder / "again"))
    assert again.schema() == sql.table.schema()
    assert again.metadata().configuration == sql.table.metadata().configuration


def test_files_are_rewritten_restored_and_deleted(sql: Sql) -> None:
    sql("INSERT INTO {t} VALUES (4, 'b', DATE'2024-01-03')")
    metrics = sql("OPTIMIZE {t} WHERE d = DATE'2024-01-03'")[0]["metrics"]
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (1, 2)
    sql("OPTIMIZE {t} ZORDER BY (id)")
    sql("DELETE FROM {t} WHERE id = 4")
    assert sql("REORG TABLE {t} APPLY (PURGE)")[0]["metrics"]["numFilesAdded"] == 1
    assert ids(sql("SELECT id FROM {t}")) == [1, 2, 3]
    restored = sql("RESTORE TABLE {t} TO VERSION AS OF 2")[0]
    assert restored["num_of_files_after_restore"] == 4
    assert ids(sql("SELECT id FROM {t}")) == [1, 2, 3, 4]
    time = sql.frame("DESCRIBE HISTORY {t}").where("version = 1").collect()[0]["timestamp"]
    assert ids(sql("SELECT id FROM {t} TIMESTAMP AS OF :time", time=time)) == [1, 2, 3]
    with pytest.raises(RetentionTooShortError, match="retentionDurationCheck"):
        sql("VACUUM {t} RETAIN 7 HOURS")
    sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    try:
        files = sql("VACUUM {t} RETAIN 0 HOURS DRY RUN")
        assert files
        assert sql("VACUUM {t} RETAIN 0 HOURS") == [{"path": sql.table.table_uri.rstrip("/")}]
        assert sql("VACUUM {t} RETAIN 0 HOURS DRY RUN") == []
    finally:
        sql("SET spark.databricks.delta.retentionDurationCheck.enabled = true")
    assert ids(sql("SELECT id FROM {t}")) == [1, 2, 3, 4]


def test_tables_are_copied_converted_and_replaced(sql: Sql) -> None:
    sql("CREATE TABLE {u} DEEP CLONE {t}")
    assert rows_of(sql.folder / "u") == rows_of(sql.uri)
    sql("CREATE OR REPLACE TABLE {u} CLUSTER BY (id) AS SELECT id, upper(name) AS name FROM {u} WHERE id < 3")
    assert rows_of(sql.folder / "u") == [{"id": 1, "name": "A"}, {"id": 2, "name": "IT'S {X}"}]
    sql("OPTIMIZE {u} FULL")
    sql("CREATE OR REPLACE TABLE {u} (x INT NOT NULL)")
    assert sql("SELECT * FROM {u}") == []
    assert DeltaTable(str(sql.folder / "u")).history()[0].commit_info.operation == "CREATE OR REPLACE TABLE"
    with pytest.raises(TableExistsError):
        sql("CREATE TABLE {u} (x INT)")
    sql("CREATE TABLE IF NOT EXISTS {u} (x INT)")
    sql.spark.range(3).write.parquet(str(sql.folder / "plain"))
    sql("CONVERT TO DELTA parquet.`{folder}/plain`")
    assert ids(sql("SELECT * FROM deltaward.`{folder}/plain`")) == [0, 1, 2]


def test_queries_mix_tables_of_all_kinds(names: Sql) -> None:
    sql = names
    sql.spark.createDataFrame([(1, "x"), (2, "y")], "id bigint, v string").createOrReplaceTempView(
        "plain_view"
    )
    sql("CREATE TABLE sql_test.named (id BIGINT, v STRING) USING deltaward LOCATION '{folder}/named'")
    sql("INSERT INTO sql_test.named SELECT id, v FROM plain_view")
    sql("CREATE TABLE sql_test.managed AS SELECT id * 2 AS id FROM sql_test.named")
    rows = sql(
        "WITH big AS (SELECT * FROM {t} WHERE id >= 1), named AS (SELECT id FROM sql_test.managed)\n"
        "SELECT b.id, n.v, (SELECT max(id) FROM named) AS top, '{}' AS braces FROM big b\n"
        "JOIN sql_test.named n ON n.id = b.id LEFT ANTI JOIN plain_view p ON p.id = b.id + 1\n"
        "WHERE b.d <= DATE'2024-01-02' AND EXISTS (SELECT 1 FROM plain_view WHERE plain_view.id = b.id)"
    )
    assert rows == [{"id": 2, "v": "y", "top": 4, "braces": "{}"}]
    assert sql("SELECT named.v FROM sql_test.named WHERE named.id = 1") == [{"v": "x"}]
    sql("CREATE OR REPLACE TEMPORARY VIEW dw_view AS SELECT id FROM sql_test.named")
    assert ids(sql("SELECT * FROM dw_view")) == [1, 2]
    assert sql("EXPLAIN SELECT * FROM {t}")[0]["plan"]
    sql("ALTER TABLE sql_test.named RENAME TO sql_test.other")
    assert ids(sql("SELECT * FROM sql_test.other")) == [1, 2]
    sql("CREATE TABLE sql_test.flat USING parquet AS SELECT id FROM sql_test.other")
    sql("INSERT INTO sql_test.flat SELECT id + 5 FROM sql_test.other WHERE id = :id", id=1)
    assert ids(sql("SELECT * FROM sql_test.flat")) == [1, 2, 6]
    with pytest.raises(DeltaError, match="flat"):
        sql("DELETE FROM sql_test.flat")
    sql("DROP TABLE sql_test.other")
    assert DeltaTable(str(sql.folder / "named")).version() == 1
    with pytest.raises(SqlStatementError, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM sql_test.other")
    with pytest.raises(TableNotFoundError):
        sql("VACUUM sql_test.other")
    with pytest.raises(UnsupportedSqlError, match="ANALYZE TABLE"):
        sql("ANALYZE TABLE sql_test.managed COMPUTE STATISTICS")


def test_names_of_columns_may_have_dots_and_backticks(sql: Sql) -> None:
    sql("CREATE TABLE {u} (`a``b` INT, `c.d` INT)")
    sql("INSERT INTO {u} VALUES (1, 2)")
    sql("INSERT INTO {u} (`c.d`) VALUES (3)")
    assert rows_of(sql.folder / "u") == [{"a`b": 1, "c.d": 2}, {"a`b": None, "c.d": 3}]


def test_files_are_left_out_by_the_conditions_of_a_query(sql: Sql) -> None:
    for condition, count in (
        ("d = DATE'2024-01-02'", 1),
        ("id > 2", 1),
        ("id > :p", 1),
        ("id > 2 OR name = 'a'", 2),
        ("rand() >= 0", 3),
    ):
        frame = sql.frame(f"SELECT id FROM {{t}} WHERE {condition}", p=2)
        assert len(frame.inputFiles()) == count, condition
    assert (
        len(sql.frame("SELECT * FROM {t} a LEFT JOIN {t} b ON a.id = b.id WHERE b.d IS NULL").inputFiles())
        == 3
    )


def test_conditions_with_other_names_steps_and_quotes_lose_no_rows(sql: Sql) -> None:
    sql("CREATE TABLE {u} (k INT, v INT)")
    for values in ("(1, 100)", "(2, 1)", "(1, 100)"):
        sql(f"INSERT INTO {{u}} VALUES {values}")
    assert sql("SELECT k FROM {u} AS x(v, k) WHERE k = 1") == [{"k": 1}]
    assert sql("SELECT * FROM {u} PIVOT (sum(v) FOR k IN (1 AS v, 2 AS w)) WHERE v = 200") == [
        {"v": 200, "w": 1}
    ]
    assert sql("SELECT id FROM {t} WHERE name = 'it''s {x}'") == [{"id": 2}]
    assert sql("FROM {u} |> ORDER BY v |> LIMIT 1 |> WHERE v = 100") == []


def test_only_allowed_tables_are_used(sql: Sql) -> None:
    allowed = [str(sql.folder / "a table")]
    assert ids(sql("SELECT id FROM {t}", table_roots=allowed)) == [1, 2, 3]
    for text in (
        "SELECT * FROM {t} JOIN {u} USING (id)",
        "CREATE TABLE {u} (id INT)",
        "CREATE TABLE x (id INT) USING delta LOCATION '{folder}/u'",
        "INSERT INTO {t} SELECT * FROM delta.`{folder}/a table/../u`",
        "CONVERT TO DELTA parquet.`{folder}/u`",
        "CREATE TABLE delta.`{folder}/a table2` SHALLOW CLONE {t}",
        "MERGE INTO {t} USING {u} ON true WHEN MATCHED THEN DELETE",
        "SELECT * FROM text.`{folder}`",
        "SELECT * FROM IDENTIFIER('text.`{folder}`')",
        "INSERT INTO {t} (name) SELECT value FROM text.`{folder}`",
        "MERGE INTO {t} USING text.`{folder}` s ON true WHEN MATCHED THEN DELETE",
        "CREATE TABLE x USING text LOCATION '{folder}'",
        "CREATE TEMPORARY VIEW x USING text OPTIONS (path '{folder}')",
        "DROP TABLE IF EXISTS x",
        "SET x = 1",
        "SELECT * FROM {t} MATCH_RECOGNIZE x FROM {t}, text.`{folder}`",
        "DELETE FROM {t} WHERE name IN (SELECT value FROM text.`{folder}`)",
        "UPDATE {t} SET name = (SELECT max(value) FROM text.`{folder}`)",
        "INSERT INTO {t} PARTITION (d = (SELECT max(value) FROM text.`{folder}`)) (id) VALUES (1)",
        "SELECT * FROM {t} TIMESTAMP AS OF (SELECT max(value) FROM text.`{folder}`)",
        "MERGE INTO {t} t USING {t} s ON t.id = (SELECT 1 FROM {u}) WHEN MATCHED THEN DELETE",
        "COPY INTO {t} FROM '{folder}/u' FILEFORMAT = TEXT",
        "COPY INTO {t} FROM '{folder}/a table' FILEFORMAT = TEXT FILES = ('../u/x')",
        "COPY INTO {t} (name) FROM (SELECT (SELECT max(value) FROM text.`{folder}`) FROM '{folder}/a table') "
        "FILEFORMAT = TEXT",
    ):
        with pytest.raises(PathEscapeError):
            sql(text, table_roots=allowed)


def test_files_are_loaded_once_by_statements_at_the_same_time(sql: Sql) -> None:
    for number in range(3):
        name = sql.folder / "landing" / f"{number}.json"
        name.parent.mkdir(exist_ok=True)
        name.write_text(f'{{"id": {number + 10}, "name": "n"}}\n')
    statement = "COPY INTO {t} FROM '{folder}/landing' FILEFORMAT = JSON"
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: sql(statement), range(3)))
    assert sorted(rows[0]["num_inserted_rows"] for rows in found) == [0, 0, 3]
    assert ids(rows_of(sql.uri)) == [1, 2, 3, 10, 11, 12]
    recorded = sql.table.snapshot.transactions
    assert sum(name.startswith("deltaward:copy-into:") for name in recorded) == 3


def test_errors_are_typed(sql: Sql) -> None:
    with pytest.raises(InvalidSqlError, match="PARSE_SYNTAX_ERROR"):
        sql("SELECT id id2 id3 FROM {t}")
    with pytest.raises(SqlStatementError, match="UNRESOLVED_COLUMN"):
        sql("SELECT nothing FROM {t}")
    with pytest.raises(UnsupportedSqlError, match="Time travel"):
        sql("SELECT * FROM nothing VERSION AS OF 1")
    with pytest.raises(UnsupportedSqlError, match="AVRO"):
        sql("COPY INTO {t} FROM '/x' FILEFORMAT = AVRO")
    with pytest.raises(DeltaError, match="is a path"):
        sql("DROP TABLE {t}")
    with pytest.raises(DeltaError, match="is not a timestamp"):
        sql("SELECT * FROM {t} TIMESTAMP AS OF 'x'")
    with pytest.raises(DeltaError, match="named values"):
        sql("SELECT ?", [1], p=2)


def test_a_job_runs_one_statement_once_on_its_tables(sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    def job(statement: str, version: int = 0, **params: Any) -> JobResult:
        spec = JobSpec(
            kind="sql",
            table=TableRef(uri=sql.uri),
            params={"statement": statement, **params},
            idempotency=IdempotencyKey(app_id="job", version=version),
            user_metadata={"task": statement},
        )
        return run_job(spec, JobContext(executor=SparkExecutor(sql.spark)), registry=registry)

    registry = JobRegistry(group=None)
    registry.register(SQL)
    inserted = job("INSERT INTO target (id) SELECT max(id) + :n FROM target", 1, parameters={"n": 10})
    assert (inserted.status, inserted.version_from, inserted.version_to) == (JobStatus.SUCCEEDED, 1, 2)
    assert inserted.commits == (2,)
    assert job("INSERT INTO target (id) SELECT max(id) + 1 FROM target", 1).already_applied
    changed = job("ALTER TABLE target ADD COLUMNS (a INT FIRST, b INT, c INT)", 2)
    assert changed.commits == (3, 4)
    assert job("ALTER TABLE target ADD COLUMN d2 INT", 2).already_applied
    assert [field.name for field in sql.table.schema().fields] == ["a", "id", "name", "d", "b", "c"]
    read = job("SELECT id, name FROM target WHERE id = 13", 3)
    assert read.output == {"columns": ["id", "name"], "rows": [["13", "none"]], "has_more": False}
    other = job("SELECT * FROM delta.`/somewhere/else`", 4)
    assert other.error is not None
    assert other.error.code == "PATH_ESCAPE"
    sql("CREATE TABLE {u} DEEP CLONE {t}")
    named = job("SELECT count(*) AS n FROM u", 5, tables={"u": str(sql.folder / "u")})
    assert named.output["rows"] == [["4"]]


def test_the_command_prints_tables_and_json(
    sql: Sql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_command, "get_session", lambda *_, **__: sql.spark)
    monkeypatch.setattr(type(sql.spark), "stop", lambda _: None)
    query = f"SELECT id, name FROM delta.`{sql.uri}` WHERE id = :id"
    done = CliRunner().invoke(sql_command.app, [query, "--parameter", "id=2"])
    assert done.stdout.splitlines() == ["id  name", "--  --------", "2   it's {x}", ""]
    script = tmp_path / "script.sql"
    script.write_text(
        f"UPDATE delta.`{sql.uri}` SET name = ';' WHERE id = 1; -- c\n{query.replace(':id', '1')};"
    )
    done = CliRunner().invoke(sql_command.app, ["--file", str(script), "--json"])
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"num_affected_rows": 1},
        {"id": 1, "name": ";"},
    ]
    done = CliRunner().invoke(sql_command.app, ["--rows", "1"], input=f"SELECT id FROM delta.`{sql.uri}`")
    assert "more than 1 rows" in done.stderr
    for arguments in (["SELECT 1", "--file", str(script)], [" -- "], ["SELECT 1", "--parameter", "x"]):
        failed = CliRunner().invoke(
            sql_command.app, ["--", *arguments] if arguments[0] == " -- " else arguments
        )
        assert isinstance(failed.exception, DeltaError)
