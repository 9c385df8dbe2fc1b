"""The interface of a condition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from delta_core.errors import TableNotFoundError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store, options_for


class TableCondition(ABC):
    """A condition on a table. Between two checks it keeps its store and the snapshot that it has read.

    Args:
        table_uri: canonical URI of the table.
        storage_options: options of the store, which the constructor opens.
    """

    def __init__(self, table_uri: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        self.store = open_store(table_uri, storage_options=options_for(table_uri, storage_options))
        self._snapshot: Snapshot | None = None

    @abstractmethod
    def check(self) -> dict[str, Any] | None:
        """The result when the condition holds, as JSON values; None when the wait continues.

        Raises:
            DeltaError: the store or the table cannot be read; `retryable` shows whether waiting can help.
        """

    def latest(self) -> Snapshot | None:
        """The newest version; None while the table does not exist.

        Costs one listing when the table has no new commit.
        """
        try:
            if self._snapshot is None:
                self._snapshot = Snapshot.load(self.store)
            else:
                self._snapshot = self._snapshot.refresh()
        except TableNotFoundError:
            self._snapshot = None
        return self._snapshot
