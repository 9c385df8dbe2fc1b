"""The surroundings of one statement: the session, parameters, and how tables are found and opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import delta_core
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    ConfigurationError,
    ExpressionError,
    PathEscapeError,
    TableNotFoundError,
    UnsupportedSqlError,
)
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from delta_core.storage.open import options_for
from delta_core.transaction import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from spark_jobs import names
from spark_jobs.engine_io import TableReach, table_reach
from spark_jobs.expressions.sql_semantics import SqlSemantics
from spark_jobs.names import TableAddress
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.sql_statements.parsing.cursor import NO_BINDINGS, Bindings
from spark_jobs.sql_statements.parsing.tokens import Lexis
from spark_jobs.sql_statements.statements import Slice, TableReference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SUFFIX = re.compile(r"(?P<path>.+)@(?:[vV](?P<version>[0-9]{1,18})|(?P<time>[0-9]{17}))", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of one statement.

    Attributes:
        semantics: how the session interprets SQL.
        storage_options, allowed_roots, engine_io: as in `spark_jobs.read`, for every table.
        table_roots: URIs; a table of the statement must be below one of them. Empty allows every table.
        tables: URIs by names in lower case, which come before those of the catalog.
        commit: provenance and idempotency key of the commit.
        snapshots: the versions that the statement has read, so that it reads each table at one version.
    """

    spark: SparkSession
    semantics: SqlSemantics
    bindings: Bindings = NO_BINDINGS
    storage_options: Mapping[str, str] | None = field(default=None, hash=False, repr=False)
    allowed_roots: Sequence[str | os.PathLike[str]] = ()
    engine_io: str = "auto"
    table_roots: Sequence[str] = ()
    tables: Mapping[str, str] = field(default_factory=dict, hash=False)
    commit: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    clock: Clock = SYSTEM_CLOCK
    snapshots: dict[tuple[str, int | None, int | None], Snapshot] = field(default_factory=dict, hash=False)

    @property
    def lexis(self) -> Lexis:
        """How the session reads quotes."""
        unlike = self.semantics.unlike
        return Lexis(double_quoted_names='"' in unlike, escapes="\\" not in unlike)

    @property
    def executor(self) -> SparkExecutor:
        """The executor of task maps."""
        return SparkExecutor(self.spark, storage_options=self.storage_options)

    def find(self, table: TableReference) -> TableAddress | None:
        """The address of a table; None when it is a view, or not a table of this library, or does not exist.

        Raises:
            PathEscapeError: the table is not below the allowed URIs.
        """
        known = self._known(table)
        if known is not None:
            return self._checked(known)
        try:
            return self._checked(names.resolve(self.spark, quoted(table)))
        except TableNotFoundError:
            return None

    def address(self, table: TableReference) -> TableAddress:
        """The address of a table of this library.

        Raises:
            TableNotFoundError: no table has the name.
            NotADeltaTableError: the name belongs to a view or to another kind of table.
            PathEscapeError: the table is not below the allowed URIs.
        """
        return self._checked(self._known(table) or names.resolve(self.spark, quoted(table)))

    def _known(self, table: TableReference) -> TableAddress | None:
        """The address of a path, or of a name that is given for this statement."""
        if table.path is not None:
            return TableAddress(uri=table.path, provider=table.parts[0].lower())
        uri = self.tables.get(table.parts[0].casefold()) if len(table.parts) == 1 else None
        return None if uri is None else TableAddress(uri=uri, provider="deltaward")

    def at_version(self, table: TableReference) -> TableReference:
        """A path that ends in `@v12` or `@yyyyMMddHHmmssSSS` as the table and its time travel.

        A path with such a name is itself if there is a table. One listing for such a name, else no request.
        """
        found = None if table.path is None or table.is_time_travel else _SUFFIX.fullmatch(table.path)
        if found is None or self.exists(table.path or ""):
            return table
        digits, version = found["time"], found["version"]
        time = None
        if digits is not None:
            day = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
            clock = f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:]}"
            time = Slice(sql=f"'{day} {clock}'", start=table.start, end=table.end)
        return replace(
            table,
            parts=(table.parts[0], found["path"]),
            version=None if version is None else int(version),
            timestamp=time,
        )

    def uri(self, table: TableReference) -> str:
        """The URI of a table of this library. Raises as `address`."""
        return self.address(table).uri

    def require_allowed(self, uri: str) -> str:
        """The URI, if a statement may use a table there.

        Raises:
            PathEscapeError: it is not below the allowed URIs.
        """
        if self.table_roots and not any(self._is_below(uri, root) for root in self.table_roots):
            raise PathEscapeError(
                f"The statement cannot use a table at {uri}.",
                cause=f"Tables must be below: {', '.join(self.table_roots)}.",
                fix="Allow the folder of the table (allowed_roots), or use another table.",
            )
        return uri

    def require_all_allowed(self, what: str) -> None:
        """Refuse what Spark finds by itself, if the statement may use only tables below some URIs.

        Raises:
            PathEscapeError: it may.
        """
        if self.table_roots:
            raise PathEscapeError(
                f"The statement cannot use {what}.",
                cause=f"It may only use Delta tables below: {', '.join(self.table_roots)}.",
                fix="Use a Delta table there, or run the statement with spark_jobs.sql and no table_roots.",
            )

    def canonical(self, uri: str) -> str:
        """The one spelling of a URI or path, without a slash at its end. No request."""
        options = options_for(uri, self.storage_options or {})
        return open_store(uri, storage_options=options, clock=self.clock).uri.rstrip("/")

    def _is_below(self, uri: str, root: str) -> bool:
        place, above = self.canonical(uri), self.canonical(root)
        return place == above or place.startswith(f"{above}/")

    def _checked(self, address: TableAddress) -> TableAddress:
        self.require_allowed(address.uri)
        return address

    def core(self, uri: str) -> delta_core.DeltaTable:
        """The table as `delta_core` opens it, at its newest version."""
        return delta_core.DeltaTable(
            uri, storage_options=self.storage_options, allowed_roots=self.allowed_roots, clock=self.clock
        )

    def exists(self, uri: str) -> bool:
        """Whether there is a table at the URI. One listing."""
        return delta_core.DeltaTable.is_deltatable(uri, self.storage_options)

    def snapshot(self, uri: str, table: TableReference) -> Snapshot:
        """The version of the table that the reference means."""
        at_ms = None if table.timestamp is None else self.epoch_ms(table.timestamp)
        key = (uri, table.version, at_ms)
        if key not in self.snapshots:
            store = open_store(uri, storage_options=self.storage_options, clock=self.clock)
            self.snapshots[key] = Snapshot.load(
                store, version=table.version, timestamp_ms=at_ms, clock=self.clock
            )
        return self.snapshots[key]

    def reach(self, snapshot: Snapshot) -> TableReach:
        """How Spark reaches the files of a table."""
        return table_reach(
            self.spark,
            snapshot.store,
            engine_io=self.engine_io,
            storage_options=self.storage_options,
            allowed_roots=self.allowed_roots,
            clock=self.clock,
        )

    def epoch_ms(self, timestamp: Slice | str) -> int:
        """A timestamp that Spark evaluates, as epoch milliseconds. One query, which reads no table.

        Raises:
            ExpressionError: Spark cannot evaluate it, or it is null.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as fn

        if isinstance(timestamp, str):
            column, shown = fn.lit(timestamp), timestamp
        else:
            column, shown = fn.expr(timestamp.sql), timestamp.sql
        try:
            rows = self.spark.range(1).select(fn.unix_millis(column.cast("timestamp")).alias("ms")).collect()
        except PySparkException as error:
            raise _not_a_time(shown, str(error).split("\n", 1)[0]) from error
        if rows[0]["ms"] is None:
            raise _not_a_time(shown, "Its value is null.")
        return int(rows[0]["ms"])


def quoted(table: TableReference) -> str:
    """The name for Spark's catalog, every part in backquotes."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in table.parts)


def require_newest(table: TableReference, what: str) -> None:
    """Refuse time travel in a statement that uses the newest version. Raises UnsupportedSqlError."""
    if table.is_time_travel:
        raise UnsupportedSqlError(
            f"{what} of an older version is not supported.",
            cause="The statement uses the newest version of the table.",
            fix="Leave out the version or the timestamp.",
        )


def require_name(table: TableReference, what: str) -> None:
    """Refuse a path in a statement about names. Raises ConfigurationError."""
    if table.path is not None:
        raise ConfigurationError(
            f"{what} needs the name of a table.",
            cause=f"{table.path} is a path, and no catalog has an entry for it.",
            fix="Use the table's name, or delete the folder of the table with the tools of the store.",
        )


def _not_a_time(shown: str, cause: str) -> ExpressionError:
    return ExpressionError(
        f"{shown} is not a timestamp.",
        cause=cause,
        fix="Write a timestamp such as '2013-01-31 08:00:00', or an expression of Spark SQL without columns.",
    )
