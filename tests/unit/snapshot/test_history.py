"""The actions of single commits, as change data, audits and vacuum read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.actions import AddFile
from delta_core.errors import CorruptLogError, VersionNotFoundError
from delta_core.log import commit_reader
from delta_core.snapshot.history import commit_actions
from tests.support.log_builder import LogBuilder, add

LIMIT = 2000


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogBuilder:
    monkeypatch.setattr(commit_reader, "MAX_LINE_BYTES", LIMIT)
    return LogBuilder(tmp_path).create()


def test_a_commit_that_is_longer_than_a_line_may_be(log: LogBuilder) -> None:
    log.commit(*(add(f"file-{number}") for number in range(50)))
    assert (log.log / f"{1:020d}.json").stat().st_size > 2 * LIMIT
    actions = commit_actions(log.store, 1)
    assert [type(action) for action in actions] == [AddFile] * 50


def test_a_line_without_an_end_is_refused_as_elsewhere(log: LogBuilder) -> None:
    log.raw(f"{1:020d}.json", b'{"commitInfo":{"a":"' + b"a" * 5000)
    with pytest.raises(CorruptLogError, match=r"00000000000000000001\.json' cannot be read") as refused:
        commit_actions(log.store, 1)
    assert f"more than {LIMIT} bytes" in refused.value.cause


def test_a_commit_that_is_not_there(log: LogBuilder) -> None:
    with pytest.raises(VersionNotFoundError, match="Version 1"):
        commit_actions(log.store, 1)
