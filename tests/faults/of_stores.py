"""Faults of stores: who gets a name when two want it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults.fault import Fault


def _replaces(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, path, data: self.put(path, data)


FAULTS = [
    Fault(
        name="put-if-absent replaces a local file",
        guarantee="a version is created once, by one writer",
        target="delta_core.storage.local:LocalLogStore.put_if_absent",
        mutate=_replaces,
        killer="tests/unit/storage/test_local.py::test_nothing_is_replaced_whenever_another_writer_comes",
    ),
    Fault(
        name="put-if-absent replaces an object",
        guarantee="a version is created once, by one writer, in an object store",
        target="delta_core.storage.object_store:ObjectLogStore.put_if_absent",
        mutate=_replaces,
        killer="tests/contract/test_remote_stores.py",
        area="extras",
    ),
    Fault(
        name="put-if-absent replaces a file in HDFS",
        guarantee="a version is created once, by one writer, in HDFS",
        target="delta_core.storage.webhdfs:WebHdfsLogStore.put_if_absent",
        mutate=_replaces,
        killer="tests/contract/test_webhdfs_store.py",
        area="extras",
    ),
]
