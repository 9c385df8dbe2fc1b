"""The condition that a table has a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_airflow.conditions.base import TableCondition
from delta_airflow.table_versions import latest_version_in


class VersionCondition(TableCondition):
    """The table has a version of at least `minimum_version`.

    A check costs one listing of the log's tail and reads no file.
    """

    def __init__(
        self, table_uri: str, minimum_version: int, *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(table_uri, storage_options=storage_options)
        self._minimum_version = minimum_version

    def check(self) -> dict[str, Any] | None:
        version = latest_version_in(self.store, self._minimum_version)
        return None if version is None else {"version": version}
