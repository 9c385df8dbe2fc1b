"""The position of a stream: the next change of a table that a reader has not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeGuard

from delta_core.errors import StreamPositionError

BASE_INDEX: Final = -1
"""The index before all changes of a version."""

_FORMAT: Final = 1
_FIX: Final = "Pass the position of a batch as it was, or start a new stream."


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPosition:
    """How far a stream has read a table.

    The JSON form has the field names of delta-spark's offsets. A stream that has read version 7 completely is
    at version 8 with `BASE_INDEX`.

    Attributes:
        table_id: the id of the table in its metadata.
        version: the version that is read next.
        index: the last change of this version that was read, counted from 0.
        is_initial_snapshot: whether the version is read as a snapshot of the whole table. Otherwise only the
            changes of its commit are read.
    """

    table_id: str
    version: int
    index: int = BASE_INDEX
    is_initial_snapshot: bool = False

    @classmethod
    def from_json(cls, json_string: str) -> Self:
        """Parse the result of `to_json`.

        Raises:
            StreamPositionError: the string is not a position.
        """
        try:
            document = json.loads(json_string)
        except (ValueError, RecursionError, TypeError) as error:
            raise _invalid(json_string, f"It is not JSON: {error}") from error
        return cls.from_document(document)

    @classmethod
    def from_document(cls, document: object) -> Self:
        """The position from the result of `to_document`. Other fields are ignored.

        Raises:
            StreamPositionError: a field is missing or has a wrong value.
        """
        if not isinstance(document, Mapping):
            raise _invalid(document, "It is not a JSON object.")
        table_id, version = document.get("reservoirId"), document.get("reservoirVersion")
        index, initial = document.get("index"), document.get("isStartingVersion")
        if document.get("sourceVersion") != _FORMAT:
            raise _invalid(document, f"Its sourceVersion is not {_FORMAT}.")
        if not isinstance(table_id, str) or not table_id:
            raise _invalid(document, "Its reservoirId is not the id of a table.")
        if not _is_number(version) or version < 0:
            raise _invalid(document, "Its reservoirVersion is not a version.")
        if not _is_number(index) or index < BASE_INDEX:
            raise _invalid(document, "Its index is not a number from -1.")
        if not isinstance(initial, bool):
            raise _invalid(document, "Its isStartingVersion is neither true nor false.")
        return cls(table_id=table_id, version=version, index=index, is_initial_snapshot=initial)

    def to_document(self) -> dict[str, Any]:
        """The position as values for JSON."""
        return {
            "sourceVersion": _FORMAT,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": self.index,
            "isStartingVersion": self.is_initial_snapshot,
        }

    def to_json(self) -> str:
        """The position as JSON on one line."""
        return json.dumps(self.to_document())

    @property
    def order(self) -> tuple[int, int]:
        """A key that grows as a stream proceeds. Positions of one stream only."""
        return self.version, self.index


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(value: object, cause: str) -> StreamPositionError:
    return StreamPositionError(
        f"{str(value)[:200]!r} is not the position of a stream.", cause=cause, fix=_FIX
    )
