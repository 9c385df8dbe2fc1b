"""Checks of the field types of parsed actions.

Replay converts these fields to Arrow columns without another check, so a wrong type must be detected here,
where the file and the line are still known. Fields that this library does not read are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_MAX_LONG = 2**63 - 1
_MIN_LONG = -(2**63)
_MAX_INT = 2**31 - 1

Fields = Mapping[str, Any]


class InvalidAction(Exception):  # noqa: N818 - never leaves the actions package
    """A field is missing or invalid. The message begins with the name of the field."""


def dv_unique_id(dv: Fields | None) -> str | None:
    """The unique id of a deletion vector, from its JSON fields; None without a deletion vector."""
    if dv is None:
        return None
    base: str = dv["storageType"] + dv["pathOrInlineDv"]
    offset = dv.get("offset")
    return base if offset is None else f"{base}@{offset}"


def _string(fields: Fields, name: str, *, required: bool = False, empty: bool = True) -> None:
    value = fields.get(name)
    if value is None and not required:
        return
    if type(value) is not str:
        raise InvalidAction(f"{name} is {_shown(value)}, expected a string")
    if not value and not empty:
        raise InvalidAction(f"{name} is empty")


def _integer(
    fields: Fields, name: str, *, required: bool = False, minimum: int = _MIN_LONG, maximum: int = _MAX_LONG
) -> None:
    value = fields.get(name)
    if value is None and not required:
        return
    if type(value) is not int:
        raise InvalidAction(f"{name} is {_shown(value)}, expected an integer")
    if not minimum <= value <= maximum:
        raise InvalidAction(f"{name} is {value}, expected a number from {minimum} to {maximum}")


def _boolean(fields: Fields, name: str, *, required: bool = False) -> None:
    value = fields.get(name)
    if (value is not None or required) and type(value) is not bool:
        raise InvalidAction(f"{name} is {_shown(value)}, expected true or false")


def _string_map(fields: Fields, name: str, *, nulls: bool = True) -> None:
    value = fields.get(name)
    if value is None:
        return
    if type(value) is not dict:
        raise InvalidAction(f"{name} is {_shown(value)}, expected an object")
    for key, item in value.items():
        if type(item) is not str and not (item is None and nulls):
            raise InvalidAction(f"{name}[{key!r}] is {_shown(item)}, expected a string")


def _string_list(fields: Fields, name: str, *, required: bool = False) -> None:
    value = fields.get(name)
    if value is None and not required:
        return
    if type(value) is not list or any(type(item) is not str for item in value):
        raise InvalidAction(f"{name} is {_shown(value)}, expected a list of strings")


def _deletion_vector(fields: Fields) -> None:
    dv = fields.get("deletionVector")
    if dv is None:
        return
    if type(dv) is not dict:
        raise InvalidAction(f"deletionVector is {_shown(dv)}, expected an object")
    _string(dv, "storageType", required=True, empty=False)
    _string(dv, "pathOrInlineDv", required=True)
    _integer(dv, "offset", minimum=0, maximum=_MAX_INT)
    _integer(dv, "sizeInBytes", required=True, minimum=0, maximum=_MAX_INT)
    _integer(dv, "cardinality", required=True, minimum=0)


def _add(fields: Fields) -> None:
    _string(fields, "path", required=True, empty=False)
    _string_map(fields, "partitionValues")
    _integer(fields, "size", required=True, minimum=0)
    _integer(fields, "modificationTime", required=True)
    _boolean(fields, "dataChange")
    _string(fields, "stats")
    _string_map(fields, "tags")
    _deletion_vector(fields)
    _integer(fields, "baseRowId")
    _integer(fields, "defaultRowCommitVersion")
    _string(fields, "clusteringProvider")


def _remove(fields: Fields) -> None:
    _string(fields, "path", required=True, empty=False)
    _integer(fields, "deletionTimestamp")
    _boolean(fields, "dataChange")
    _boolean(fields, "extendedFileMetadata")
    _string_map(fields, "partitionValues")
    _integer(fields, "size", minimum=0)
    _string(fields, "stats")
    _string_map(fields, "tags")
    _deletion_vector(fields)
    _integer(fields, "baseRowId")
    _integer(fields, "defaultRowCommitVersion")


def _cdc(fields: Fields) -> None:
    _string(fields, "path", required=True, empty=False)
    _string_map(fields, "partitionValues")
    _integer(fields, "size", required=True, minimum=0)
    _boolean(fields, "dataChange")
    _string_map(fields, "tags")


def _metadata(fields: Fields) -> None:
    _string(fields, "id", required=True)
    _string(fields, "name")
    _string(fields, "description")
    # Some pipelines create a table before they know its columns. A snapshot of such a version is an error.
    _string(fields, "schemaString")
    _string_list(fields, "partitionColumns")
    _string_map(fields, "configuration", nulls=False)
    _integer(fields, "createdTime")
    table_format = fields.get("format")
    if table_format is not None:
        if type(table_format) is not dict:
            raise InvalidAction(f"format is {_shown(table_format)}, expected an object")
        _string(table_format, "provider")
        _string_map(table_format, "options")


def _protocol(fields: Fields) -> None:
    _integer(fields, "minReaderVersion", required=True, minimum=0, maximum=_MAX_INT)
    _integer(fields, "minWriterVersion", required=True, minimum=0, maximum=_MAX_INT)
    _string_list(fields, "readerFeatures")
    _string_list(fields, "writerFeatures")


def _txn(fields: Fields) -> None:
    _string(fields, "appId", required=True)
    _integer(fields, "version", required=True)
    _integer(fields, "lastUpdated")


def _domain_metadata(fields: Fields) -> None:
    _string(fields, "domain", required=True, empty=False)
    _string(fields, "configuration", required=True)
    _boolean(fields, "removed", required=True)


def _checkpoint_metadata(fields: Fields) -> None:
    _integer(fields, "version", required=True, minimum=0)


def _sidecar(fields: Fields) -> None:
    _string(fields, "path", required=True, empty=False)
    _integer(fields, "sizeInBytes", minimum=0)
    _integer(fields, "modificationTime")


def _anything(fields: Fields) -> None:
    """Accept any `commitInfo`: see `commit_info_from_json`."""


def _shown(value: object) -> str:
    shown = repr(value)
    return "missing" if value is None else shown if len(shown) <= 60 else shown[:59] + "…"


CHECKS: dict[str, Callable[[Fields], None]] = {
    "add": _add,
    "remove": _remove,
    "metaData": _metadata,
    "protocol": _protocol,
    "commitInfo": _anything,
    "txn": _txn,
    "domainMetadata": _domain_metadata,
    "cdc": _cdc,
}
"""The check of each known action of a commit, by JSON key."""

CHECKPOINT_CHECKS: dict[str, Callable[[Fields], None]] = {
    **CHECKS,
    "checkpointMetadata": _checkpoint_metadata,
    "sidecar": _sidecar,
}
"""The check of each known action of a checkpoint, by JSON key. Two of them do not occur in commits."""
