"""The shape of a condition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from delta_core.errors import TableNotFoundError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store, options_for


class TableCondition(ABC):
    """Something that a table is to be. It keeps its store, and what it has read, from one look to the next.

    Args:
        table_uri: canonical URI of the table.
        storage_options: for the store, which is opened here.
    """

    def __init__(self, table_uri: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        self.store = open_store(table_uri, storage_options=options_for(table_uri, storage_options))
        self._snapshot: Snapshot | None = None

    @abstractmethod
    def look(self) -> dict[str, Any] | None:
        """What there is to tell when the condition holds, JSON values only; None to go on waiting.

        Raises:
            DeltaError: the store or the table cannot be read; `retryable` says whether waiting can help.
        """

    def latest(self) -> Snapshot | None:
        """The newest version; None while there is no table. One listing when nothing was committed since."""
        try:
            if self._snapshot is None:
                self._snapshot = Snapshot.load(self.store)
            else:
                self._snapshot = self._snapshot.refresh()
        except TableNotFoundError:
            self._snapshot = None
        return self._snapshot
