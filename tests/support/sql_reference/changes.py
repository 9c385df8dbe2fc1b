"""INSERT, DELETE, UPDATE, MERGE, TRUNCATE and COPY INTO."""

from __future__ import annotations

import datetime as dt

from tests.support.sql_reference.case import (
    columns,
    field_types,
    ids,
    names,
    operation,
    refused,
    right,
    value,
    version,
)

_INSERT = (
    right("INSERT INTO t VALUES (4, 'd', DATE'2024-01-04')", ids(1, 2, 3, 4), operation("WRITE")),
    right("INSERT INTO t VALUES (4, 'd', DATE'2024-01-04'), (5, NULL, NULL)", ids(1, 2, 3, 4, 5)),
    right("INSERT INTO TABLE t SELECT * FROM s WHERE id = 4", ids(1, 2, 3, 4)),
    right("INSERT INTO t TABLE s", ids(1, 2, 2, 3, 3, 4)),
    right("INSERT INTO t (id) VALUES (9)", ids(1, 2, 3, 9), names("a", "b", "c", None)),
    right("INSERT INTO t (d, id) SELECT DATE'2024-01-04', 4", ids(1, 2, 3, 4)),
    right("INSERT INTO t BY NAME SELECT 'd' AS name, 4L AS id", ids(1, 2, 3, 4), names("a", "b", "c", "d")),
    right("INSERT INTO t SELECT id + 10, name, d FROM t", ids(1, 2, 3, 11, 12, 13)),
    right("INSERT INTO t SELECT * FROM s VERSION AS OF 0", ids(1, 2, 2, 3, 3, 4)),
    right("INSERT INTO t WITH x AS (SELECT * FROM s) SELECT * FROM x WHERE id > 3", ids(1, 2, 3, 4)),
    right("INSERT INTO t (SELECT * FROM s WHERE id = 4)", ids(1, 2, 3, 4)),
    right("WITH x AS (SELECT * FROM s) INSERT INTO t SELECT * FROM x WHERE id = 4", ids(1, 2, 3, 4)),
    right("WITH x AS (SELECT * FROM s WHERE id = :i) INSERT OVERWRITE t TABLE x", ids(4), arguments={"i": 4}),
    right("INSERT INTO t SELECT * FROM s WHERE id NOT IN (SELECT id FROM t)", ids(1, 2, 3, 4)),
    right("INSERT INTO t FROM s SELECT id, name, d WHERE id = 4", ids(1, 2, 3, 4)),
    right("INSERT INTO t PARTITION (d = DATE'2024-02-01') VALUES (4, 'd')", ids(1, 2, 3, 4)),
    right("INSERT INTO t PARTITION (d = '2024-02-01') (id) VALUES (4)", ids(1, 2, 3, 4)),
    right("INSERT INTO t PARTITION (d) SELECT 4, 'd', DATE'2024-02-01'", ids(1, 2, 3, 4)),
    right("INSERT OVERWRITE t SELECT * FROM s", ids(2, 3, 4)),
    right("INSERT OVERWRITE TABLE t VALUES (7, 'g', NULL)", ids(7)),
    right("INSERT OVERWRITE t PARTITION (d = DATE'2024-01-01') SELECT 8, 'h'", ids(2, 3, 8)),
    right(
        "INSERT OVERWRITE t PARTITION (d = DATE'2024-01-01') IF NOT EXISTS SELECT 8, 'h'",
        ids(1, 2, 3),
        version(3),
    ),
    right("INSERT OVERWRITE t PARTITION (d = DATE'2024-03-01') IF NOT EXISTS SELECT 8, 'h'", ids(1, 2, 3, 8)),
    right("INSERT OVERWRITE t TABLE t", ids(1, 2, 3)),
    right("INSERT INTO t REPLACE WHERE d = DATE'2024-01-01' SELECT 5, 'e', DATE'2024-01-01'", ids(2, 3, 5)),
    right("INSERT INTO t REPLACE WHERE d >= '2024-01-02' SELECT id, name, d FROM t WHERE id = 3", ids(1, 3)),
    right("INSERT INTO t REPLACE WHERE id = 2 VALUES (2, 'two', DATE'2024-01-02')", names("a", "two", "c")),
    right("INSERT INTO t REPLACE USING (d) SELECT 8L, 'h', DATE'2024-01-02'", ids(1, 3, 8)),
    right(
        "INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 4L AS id, 1.5D AS x",
        field_types("id long, name string, d date, x double"),
    ),
    right(
        "INSERT INTO t VALUES (:id, :name, :d)",
        names("a", "b", "c", "it's"),
        arguments={"id": 4, "name": "it's", "d": dt.date(2024, 1, 4)},
    ),
    right("INSERT INTO t SELECT ?, ?, ?", ids(1, 2, 3, 4), arguments=[4, "x", None]),
    right("INSERT INTO delta.`{folder}/t` SELECT * FROM delta.`{folder}/s` WHERE id = 4", ids(1, 2, 3, 4)),
    right(
        "INSERT INTO t SELECT id, name, CAST(NULL AS DATE) FROM parquet.`{folder}/plain`", ids(1, 1, 2, 2, 3)
    ),
    right(
        "INSERT INTO IDENTIFIER(:name) SELECT * FROM s WHERE id = 4", ids(1, 2, 3, 4), arguments={"name": "t"}
    ),
    refused("INSERT INTO t VALUES (4, 'd')", "INSERT needs 3", "SchemaMismatchError"),
    refused("INSERT INTO t (nothing) VALUES (4)", "no column 'nothing'", "SchemaMismatchError"),
    refused("INSERT INTO t (id) VALUES ('x')", "CAST", "SchemaMismatchError"),
    refused("INSERT INTO t BY NAME SELECT 4L AS id, 5 AS other", "other", "SchemaMismatchError"),
)

_DELETE = (
    right("DELETE FROM t WHERE id = 1", ids(2, 3), value("num_affected_rows", 1), operation("DELETE")),
    right("DELETE FROM t", ids(), value("num_affected_rows", 3)),
    right("DELETE FROM t AS x WHERE x.id > 1 AND x.name = 'b'", ids(1, 3)),
    right("DELETE FROM t WHERE d < DATE'2024-01-03'", ids(3)),
    right("DELETE FROM t WHERE d IS NULL", ids(1, 2, 3), value("num_affected_rows", 0), version(3)),
    right("DELETE FROM t WHERE id IN (1, 3) OR name LIKE 'x%'", ids(2)),
    right("DELETE FROM delta.`{folder}/t` WHERE id = 2", ids(1, 3)),
    right("DELETE FROM t WHERE id = :id AND name = :name", ids(2, 3), arguments={"id": 1, "name": "a"}),
    right("DELETE FROM t WHERE d = date_add(DATE'2024-01-01', 1)", ids(1, 3)),
    right("TRUNCATE TABLE t", ids()),
    right("TRUNCATE TABLE t PARTITION (d = DATE'2024-01-02')", ids(1, 3)),
    refused("DELETE FROM t WHERE id IN (SELECT id FROM s)", "subquery", "ConfigurationError"),
)

_UPDATE = (
    right(
        "UPDATE t SET name = 'x' WHERE id = 2",
        names("a", "x", "c"),
        value("num_affected_rows", 1),
        operation("UPDATE"),
    ),
    right("UPDATE t SET name = 'x'", names("x", "x", "x"), value("num_affected_rows", 3)),
    right("UPDATE t AS x SET x.name = upper(x.name), x.d = NULL WHERE x.id < 3", names("A", "B", "c")),
    right("UPDATE t SET id = id + 1", ids(2, 3, 4)),
    right("UPDATE t SET name = CASE WHEN id = 1 THEN 'one' ELSE name END", names("one", "b", "c")),
    right("UPDATE t SET d = d + INTERVAL 1 DAY WHERE d = '2024-01-01'", ids(1, 2, 3)),
    right(
        "UPDATE t SET name = :name WHERE id = :id",
        names("it's; DELETE", "b", "c"),
        arguments={"name": "it's; DELETE", "id": 1},
    ),
    right("UPDATE delta.`{folder}/t` SET name = NULL WHERE id = 1", names(None, "b", "c")),
    right("UPDATE t SET name = concat(name, '-', id) WHERE name IN ('a', 'c')", names("a-1", "b", "c-3")),
    right("UPDATE t SET `name` = 'q' WHERE `id` = 3;", names("a", "b", "q")),
    refused("UPDATE t SET nothing = 1", "nothing", "ExpressionError"),
)

_COUNTS = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
_MERGE = (
    right(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'm'",
        names("a", "m", "m"),
        columns(*_COUNTS),
    ),
    right(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", ids(1, 2, 3), operation("MERGE")
    ),
    right("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *", ids(1, 2, 3, 4)),
    right("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", ids(1)),
    right(
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN "
            "UPDATE SET t.name = s.name || '!' WHEN NOT MATCHED THEN INSERT (id, name, d) VALUES (s.id, "
            "s.name, s.d)"
        ),
        names("a", "c!", "d"),
        value("num_affected_rows", 3),
    ),
    right(
        (
            "MERGE INTO t AS x USING s AS y ON x.id = y.id WHEN NOT MATCHED BY TARGET AND y.id > 3 THEN "
            "INSERT (id) VALUES (y.id)"
        ),
        names("a", "b", "c", None),
    ),
    right("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE", ids(2, 3)),
    right(
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET "
            "t.name = 'left'"
        ),
        names("left", "b", "c"),
    ),
    right(
        (
            "MERGE INTO t USING (SELECT id, upper(name) AS name FROM s) u ON t.id = u.id WHEN MATCHED THEN "
            "UPDATE SET name = u.name"
        ),
        names("a", "B", "C"),
    ),
    right("MERGE INTO t USING s VERSION AS OF 0 o ON t.id = o.id WHEN MATCHED THEN DELETE", ids(1)),
    right(
        (
            "MERGE INTO t USING t TIMESTAMP AS OF '2024-01-02 13:00:00' old ON t.id = old.id WHEN MATCHED "
            "THEN UPDATE SET name = old.name || '*'"
        ),
        names("a*", "b*", "c"),
    ),
    right(
        "MERGE INTO t USING delta.`{folder}/s` s ON t.id = s.id AND t.d = s.d WHEN MATCHED THEN DELETE",
        ids(1),
    ),
    right(
        (
            "MERGE INTO t USING (VALUES (1, 'one'), (9, 'nine')) v(id, name) ON t.id = v.id WHEN MATCHED "
            "THEN UPDATE SET name = v.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (v.id, v.name)"
        ),
        names("one", "b", "c", "nine"),
    ),
    right("MERGE INTO t USING parquet.`{folder}/plain` p ON t.id = p.id WHEN MATCHED THEN DELETE", ids(3)),
    right(
        (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT id, 5 AS extra FROM s) u ON t.id = u.id WHEN "
            "MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        field_types("id long, name string, d date, extra integer"),
        ids(1, 2, 3, 4),
    ),
    right(
        "MERGE INTO t USING s ON t.id = s.id AND s.id = :id WHEN MATCHED THEN UPDATE SET name = :name",
        names("a", "p", "c"),
        arguments={"id": 2, "name": "p"},
    ),
    right(
        (
            "MERGE INTO t USING (WITH w AS (SELECT * FROM s) SELECT * FROM w WHERE id = 4) n ON t.id = "
            "n.id WHEN NOT MATCHED THEN INSERT *"
        ),
        ids(1, 2, 3, 4),
    ),
    right("MERGE INTO t USING s ON false WHEN NOT MATCHED THEN INSERT *", ids(1, 2, 2, 3, 3, 4)),
    right(
        (
            "MERGE INTO delta.`{folder}/t` t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.d = "
            "current_date()"
        ),
        ids(1, 2, 3),
    ),
    refused(
        "MERGE INTO t USING (VALUES (1), (1)) v(id) ON t.id = v.id WHEN MATCHED THEN UPDATE SET name = 'x'",
        "",
        "MergeDuplicateMatchError",
    ),
)

_COPIED = ("num_affected_rows", "num_inserted_rows", "num_skipped_corrupt_files")
_HEADER = "FORMAT_OPTIONS ('header' = 'true')"
_COPY = (
    right(
        f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV {_HEADER}",
        ids(1, 2, 3, 10, 11, 12),
        columns(*_COPIED),
    ),
    right(
        f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV {_HEADER}",
        ids(1, 2, 3, 10, 11, 12),
        value("num_inserted_rows", 0),
        version(4),
        before=[f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV {_HEADER}"],
    ),
    right(
        f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV {_HEADER}",
        value("num_inserted_rows", 1),
        ids(1, 2, 3, 10, 11, 12),
        before=[f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV FILES = ('one.csv') {_HEADER}"],
    ),
    right(
        f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV {_HEADER} COPY_OPTIONS ('force' = 'true')",
        ids(1, 2, 3, 10, 10, 11, 11, 12, 12),
        before=[f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV {_HEADER}"],
    ),
    right(
        f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV FILES = ('two.csv') {_HEADER}",
        ids(1, 2, 3, 12),
    ),
    right(
        f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV PATTERN = 'o*.csv' {_HEADER}",
        ids(1, 2, 3, 10, 11),
    ),
    right(
        f"COPY INTO t FROM '{{folder}}/files' FILEFORMAT = CSV PATTERN = 'csv/t*.csv' {_HEADER}",
        ids(1, 2, 3, 12),
    ),
    right(
        f"COPY INTO t FROM '{{folder}}/files/csv' FILEFORMAT = CSV PATTERN = 'none*' {_HEADER}",
        value("num_inserted_rows", 0),
        version(3),
    ),
    right(
        (
            "COPY INTO t FROM '{folder}/files/csv' FILEFORMAT = CSV FORMAT_OPTIONS ('header' = 'true', "
            "'inferSchema' = 'true')"
        ),
        ids(1, 2, 3, 10, 11, 12),
    ),
    right(
        "COPY INTO t FROM '{folder}/files/plain_csv' FILEFORMAT = CSV FORMAT_OPTIONS ('delimiter' = '|')",
        ids(1, 2, 3, 20, 21),
    ),
    right(
        (
            "COPY INTO t (id, name, d) FROM '{folder}/files/plain_csv' FILEFORMAT = CSV FORMAT_OPTIONS "
            "('sep' = '|')"
        ),
        ids(1, 2, 3, 20, 21),
    ),
    right(
        (
            "COPY INTO t FROM (SELECT _c0::bigint AS id, upper(_c1) AS name FROM "
            "'{folder}/files/plain_csv') FILEFORMAT = CSV FORMAT_OPTIONS ('sep' = '|')"
        ),
        names("a", "b", "c", "P", "Q"),
    ),
    right("COPY INTO t FROM '{folder}/files/json' FILEFORMAT = JSON", ids(1, 2, 3, 30, 31)),
    right("COPY INTO t FROM '{folder}/files/parquet' FILEFORMAT = PARQUET", ids(1, 2, 3, 4)),
    right("COPY INTO t BY POSITION FROM '{folder}/files/parquet' FILEFORMAT = PARQUET", ids(1, 2, 3, 4)),
    right(
        "COPY INTO delta.`{folder}/t` FROM '{folder}/files/parquet/a.parquet' FILEFORMAT = PARQUET",
        ids(1, 2, 3, 4),
    ),
    right(
        "COPY INTO t FROM '{folder}/files/wide' FILEFORMAT = JSON COPY_OPTIONS ('mergeSchema' = 'true')",
        field_types("id long, name string, d date, extra double"),
        ids(1, 2, 3, 40),
    ),
    right(
        "COPY INTO t FROM :location FILEFORMAT = PARQUET",
        ids(1, 2, 3, 4),
        arguments={"location": "{folder}/files/parquet"},
    ),
    refused("COPY INTO t FROM '{folder}/files/wide' FILEFORMAT = JSON", "extra", "SchemaMismatchError"),
    refused(
        f"COPY INTO t FROM '{{folder}}/files/bad_csv' FILEFORMAT = CSV {_HEADER}",
        "does not fit the column id",
        "JobFailedError",
    ),
    refused("COPY INTO t FROM '{folder}/nothing' FILEFORMAT = PARQUET", "no file", "MissingDataFileError"),
    refused(
        "COPY INTO t FROM '{folder}/files/csv' FILEFORMAT = CSV FILES = ('../csv/one.csv')",
        "stay below",
        "PathEscapeError",
    ),
    refused("COPY INTO t FROM '{folder}/files/csv' FILEFORMAT = AVRO", "AVRO"),
    refused("COPY INTO t FROM '{folder}/files/csv' FILEFORMAT = CSV VALIDATE ALL", "VALIDATE"),
    refused("COPY INTO t FROM '{folder}/files/csv' FILEFORMAT = CSV COPY_OPTIONS ('other' = 'x')", "other"),
    refused("COPY INTO t FROM '{folder}/x' WITH (CREDENTIAL c) FILEFORMAT = CSV", "CREDENTIAL"),
    refused("COPY INTO t FROM (SELECT id FROM '{folder}/x' WHERE id > 1) FILEFORMAT = CSV", "WHERE"),
)

CHANGES = (*_INSERT, *_DELETE, *_UPDATE, *_MERGE, *_COPY)
