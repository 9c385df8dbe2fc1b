"""OPTIMIZE, VACUUM, RESTORE, REORG, CONVERT, GENERATE, FSCK, and statements that Spark runs."""

from __future__ import annotations

from tests.support.sql_reference.case import (
    at_least,
    columns,
    ids,
    operation,
    refused,
    result,
    right,
    value,
    version,
)

_SHORT = "SET spark.databricks.delta.retentionDurationCheck.enabled = false"
_UPKEEP = (
    right("OPTIMIZE t", ids(1, 2, 3), columns("path", "metrics")),
    right(
        "OPTIMIZE s",
        ids(2, 3, 4, 9, table="s"),
        operation("OPTIMIZE", "s"),
        value("metrics.numFilesRemoved", 2),
        before=["INSERT INTO s VALUES (9, 'x', NULL)"],
    ),
    right("OPTIMIZE '{folder}/s'", ids(2, 3, 4, table="s")),
    right(
        "OPTIMIZE t WHERE d = DATE'2024-01-01'",
        ids(1, 1, 2, 3),
        value("metrics.numFilesAdded", 1),
        before=["INSERT INTO t VALUES (1, 'x', DATE'2024-01-01')"],
    ),
    right("OPTIMIZE t ZORDER BY (id)", ids(1, 2, 3), operation("OPTIMIZE")),
    right("OPTIMIZE t ZORDER BY id, name", ids(1, 2, 3), operation("OPTIMIZE")),
    right("OPTIMIZE t WHERE d >= '2024-01-02' ZORDER BY (name)", ids(1, 2, 3)),
    right("OPTIMIZE s FULL", ids(2, 3, 4, table="s"), before=["ALTER TABLE s CLUSTER BY (id)"]),
    right("VACUUM t", columns("path"), ids(1, 2, 3)),
    right("VACUUM t RETAIN 200 HOURS", ids(1, 2, 3)),
    right("VACUUM t DRY RUN", result()),
    right("VACUUM t FULL", ids(1, 2, 3)),
    right("VACUUM t LITE", ids(1, 2, 3)),
    right("VACUUM '{folder}/t' RETAIN 168 HOURS DRY RUN", result()),
    right("VACUUM t RETAIN 0 HOURS", ids(1, 2), at_least(1), before=[_SHORT, "DELETE FROM t WHERE id = 3"]),
    refused("VACUUM t RETAIN 7 HOURS", "retentionDurationCheck", "RetentionTooShortError"),
    refused("VACUUM t LITE RETAIN 0 HOURS", "retentionDurationCheck", "RetentionTooShortError"),
    right("RESTORE TABLE t TO VERSION AS OF 1", ids(1), operation("RESTORE"), value("num_removed_files", 2)),
    right("RESTORE t TO TIMESTAMP AS OF '2024-01-02 13:00:00'", ids(1, 2)),
    right("RESTORE TABLE delta.`{folder}/t` VERSION AS OF 2", ids(1, 2)),
    right("RESTORE TABLE t TO VERSION AS OF :v", ids(1), arguments={"v": 1}),
    refused("RESTORE TABLE t TO VERSION AS OF 99", "99", "VersionNotFoundError"),
    right(
        "REORG TABLE s APPLY (PURGE)",
        ids(3, 4, table="s"),
        operation("REORG", "s"),
        before=[
            "ALTER TABLE s SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
            "DELETE FROM s WHERE id = 2",
        ],
    ),
    right("REORG TABLE t WHERE d = DATE'2024-01-01' APPLY (PURGE)", ids(1, 2, 3)),
    right(
        "CONVERT TO DELTA parquet.`{folder}/plain`", ids(1, 2, table="plain"), operation("CONVERT", "plain")
    ),
    right("CONVERT TO DELTA parquet.`{folder}/plain` NO STATISTICS", ids(1, 2, table="plain")),
    right(
        "CONVERT TO DELTA parquet.`{folder}/partitioned` PARTITIONED BY (k INT)",
        ids(1, 2, table="partitioned"),
    ),
    refused("CONVERT TO DELTA parquet.`{folder}/partitioned`", "partition columns", "SchemaError"),
    refused("CONVERT TO DELTA iceberg.`{folder}/plain`", "iceberg"),
    right("GENERATE symlink_format_manifest FOR TABLE s", ids(2, 3, 4, table="s")),
    right("FSCK REPAIR TABLE t DRY RUN", columns("dataFilePath", "dataFileMissing"), version(3)),
    right("FSCK REPAIR TABLE t", ids(1, 2, 3)),
)

_OF_SPARK = (
    right("CREATE DATABASE IF NOT EXISTS reference_db", result()),
    right("CREATE SCHEMA IF NOT EXISTS reference_db COMMENT 'x'", result()),
    right("SHOW DATABASES", at_least(1)),
    right("SHOW SCHEMAS LIKE 'reference*'", result("reference_db")),
    right("SHOW FUNCTIONS LIKE 'upper'", at_least(1)),
    right("DESCRIBE FUNCTION abs", at_least(1)),
    right("DESCRIBE DATABASE reference_db", at_least(1)),
    right("DESCRIBE QUERY SELECT 1 AS one", value("col_name", "one")),
    right("USE default", result()),
    right("SET spark.sql.shuffle.partitions", at_least(1)),
    right("SET TIME ZONE 'UTC'", at_least(0)),
    right("SHOW CATALOGS", at_least(1)),
    right("SELECT current_database()", result("default")),
    right("CREATE OR REPLACE TEMPORARY FUNCTION reference_twice(x INT) RETURNS INT RETURN x * 2", result()),
    right("DECLARE OR REPLACE VARIABLE reference_number INT DEFAULT 5", result()),
    right("BEGIN SELECT 1; END", at_least(0)),
    right("DROP VIEW IF EXISTS reference_nothing", result()),
    right("CREATE TABLE IF NOT EXISTS reference_db.flat (id INT) USING parquet", result()),
    right(
        "SELECT * FROM reference_db.plain",
        result(1, 2),
        before=[
            "DROP TABLE IF EXISTS reference_db.plain",
            "CREATE TABLE reference_db.plain USING parquet AS SELECT id FROM t WHERE id < 3",
        ],
    ),
    right(
        "ANALYZE TABLE reference_db.counted COMPUTE STATISTICS",
        result(),
        before=["CREATE TABLE IF NOT EXISTS reference_db.counted (id INT) USING parquet"],
    ),
)

UPKEEP = (*_UPKEEP, *_OF_SPARK)
