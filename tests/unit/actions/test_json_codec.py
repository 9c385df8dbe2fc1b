"""Commits to bytes and back, and the commits that are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delta_core.actions import (
    Action,
    AddCdcFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from delta_core.actions.json_codec import decode_commit, encode_commit, parse_commit
from delta_core.errors import CorruptLogError

DELETION_VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", offset=4, size_in_bytes=40, cardinality=6
)
ACTIONS: list[Action] = [
    Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"timestampNtz"}),
        writer_features=frozenset({"timestampNtz", "appendOnly"}),
    ),
    Metadata(
        id="i",
        schema_string="{}",
        partition_columns=("p",),
        configuration={"k": "v"},
        name="n",
        created_time_ms=5,
    ),
    AddFile(
        path="p=1/a%20b",
        partition_values={"p": "1", "q": None},
        size_bytes=0,
        modification_time_ms=-1,
        data_change=False,
        stats='{"numRecords":1}',
        tags={"t": None},
        deletion_vector=DELETION_VECTOR,
        base_row_id=7,
        default_row_commit_version=8,
        clustering_provider="liquid",
    ),
    RemoveFile(
        path="x", deletion_timestamp_ms=9, extended_file_metadata=True, partition_values={}, size_bytes=3
    ),
    CommitInfo(
        timestamp_ms=1,
        operation="WRITE",
        operation_parameters={"mode": "Append"},
        txn_id="t",
        is_blind_append=True,
        extra={"clusterId": "c"},
    ),
    SetTransaction(app_id="a", version=3, last_updated_ms=4),
    DomainMetadata(domain="d", configuration="{}", removed=True),
    AddCdcFile(path="_change_data/x", partition_values={"p": None}, size_bytes=1),
]


def _commit(*lines: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(line).encode() for line in lines)


def _add(**changes: Any) -> dict[str, Any]:
    fields = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": fields | changes}


def test_round_trip_with_commit_info_first() -> None:
    data = encode_commit(ACTIONS)
    assert data.endswith(b"\n")
    assert b"commitInfo" in data.split(b"\n")[0]
    decoded = decode_commit(data, path="0.json")
    assert decoded[0] == ACTIONS[4]
    assert decoded[1:] == [action for action in ACTIONS if not isinstance(action, CommitInfo)]


def test_absent_and_null_fields_are_alike() -> None:
    absent = decode_commit(_commit(_add()), path="p")
    null = decode_commit(_commit(_add(stats=None, tags=None, deletionVector=None)), path="p")
    assert absent == null


def test_unknown_actions_and_fields_are_ignored() -> None:
    data = _commit({"futureAction": {"x": 1}}, _add(future=[1, {"y": 2}]), {"add": None})
    assert len(decode_commit(data + b"\n\n", path="p")) == 1


def test_odd_commit_info_is_kept_not_refused() -> None:
    odd = {
        "commitInfo": {
            "timestamp": "yesterday",
            "operationParameters": "p",
            "engineInfo": 3,
            "operation": "W",
        }
    }
    (info,) = decode_commit(_commit(odd), path="p")
    assert isinstance(info, CommitInfo)
    assert (info.operation, info.timestamp_ms, info.engine_info) == ("W", None, None)
    assert info.extra == {"timestamp": "yesterday", "operationParameters": "p", "engineInfo": 3}
    (nothing,) = decode_commit(_commit({"commitInfo": {"operation": None, "timestamp": None}}), path="p")
    assert nothing == CommitInfo()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([_add(), _add()], "'add' here and a 'add' in line 1"),
        ([_add(path="a%20b"), {"remove": {"path": "a b"}}], "'remove' here and a 'add' in line 1"),
        ([{"remove": {"path": "a"}}, {"remove": {"path": "a"}}], "'remove'"),
        ([{"metaData": {"id": "a", "schemaString": "{}"}}] * 2, "second 'metaData'"),
        ([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}] * 2, "second 'protocol'"),
        ([{"txn": {"appId": "a", "version": 1}}] * 2, "second 'txn'"),
        ([_add(size=-1)], "size is -1"),
        ([_add(size=2**63)], "size is 9223372036854775808"),
        ([_add(size=1.5)], "expected an integer"),
        ([_add(size=True)], "expected an integer"),
        ([_add(path="")], "path is empty"),
        ([_add(path=None)], "path is missing"),
        ([_add(partitionValues={"p": 1})], r"partitionValues\['p'\] is 1"),
        ([_add(stats={"numRecords": 1})], "expected a string"),
        ([_add(dataChange="true")], "expected true or false"),
        ([_add(deletionVector={"storageType": "u"})], "pathOrInlineDv is missing"),
        ([{"add": [1]}], "not a JSON object"),
        ([{"add": _add()["add"], "remove": {"path": "a"}}], "two actions"),
        ([[1]], "not a JSON object"),
        ([{"protocol": {"minReaderVersion": "1", "minWriterVersion": 2}}], "expected an integer"),
        ([{"metaData": {"id": "a", "configuration": {"k": None}}}], "expected a string"),
        ([{"metaData": {"id": "a", "format": "parquet"}}], "format is 'parquet', expected an object"),
        ([{"metaData": {"id": "a", "partitionColumns": "p"}}], "expected a list of strings"),
        ([{"metaData": {"id": "a", "partitionColumns": ["p", 1]}}], "expected a list of strings"),
        ([{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [None]}}], "strings"),
        ([_add(partitionValues=["p"])], "partitionValues is .*, expected an object"),
        ([_add(deletionVector="u")], "deletionVector is 'u', expected an object"),
    ],
)
def test_contradictions_name_file_and_line(lines: list[Any], reason: str) -> None:
    with pytest.raises(CorruptLogError, match=reason) as caught:
        decode_commit(_commit(*lines), path="_delta_log/00000000000000000007.json")
    assert f"Line {len(lines)} of '_delta_log/00000000000000000007.json'" in caught.value.problem


@pytest.mark.parametrize(
    "line",
    [b'{"add":', b"\xff\xfe", b'{"add":{"path":"\xff"}}', b"nonsense", b'{"a":' * 3000, b"{}{}", b"\0"],
)
def test_what_is_not_json_is_refused(line: bytes) -> None:
    with pytest.raises(CorruptLogError, match="Line 2"):
        parse_commit(b'{"commitInfo":{}}\n' + line, path="x")


def test_files_that_differ_in_their_deletion_vector_are_two() -> None:
    dv = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    data = _commit(_add(deletionVector=dv), {"remove": {"path": "a"}})
    assert len(decode_commit(data, path="p")) == 2
    assert DELETION_VECTOR.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
