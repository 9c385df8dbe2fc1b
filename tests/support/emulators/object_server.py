"""The object stores by name: started, with a container to write to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tests.support.emulators.azurite import azurite
from tests.support.emulators.fake_gcs import fake_gcs
from tests.support.emulators.installation import require
from tests.support.emulators.s3rver import s3rver
from tests.support.emulators.versitygw import versitygw

CONTAINER = "tables"
"""The bucket or container that each server is given at its start."""

HONEST = ("versitygw", "azurite", "fake-gcs-server")
"""The servers that let one of many racing writers create an object."""

NEGATIVE_CONTROL = "s3rver"
"""The server that lets them all."""


class ObjectServer(Protocol):
    """What the tests of any object store need of its server."""

    @property
    def endpoint(self) -> str:
        """Where it answers."""
        ...

    def store(self, container: str, *, endpoint: str | None = None, **options: Any) -> Any:
        """Obstore's view of a container, through the proxy at `endpoint` where there is one."""
        ...

    def create_container(self, name: str) -> None:
        """Make a container: a bucket, in the words of S3 and Google."""
        ...


_STARTERS: dict[str, Callable[[Path], AbstractContextManager[ObjectServer]]] = {
    "versitygw": versitygw,
    "azurite": azurite,
    "fake-gcs-server": fake_gcs,
    "s3rver": s3rver,
}


@contextlib.contextmanager
def object_server(name: str, folder: Path) -> Iterator[ObjectServer]:
    """The named server with an empty container `CONTAINER`; skips, or fails under CI, where it is missing."""
    require(name)
    with _STARTERS[name](folder) as server:
        server.create_container(CONTAINER)
        yield server
