"""How an object gets its name on HDFS, in one step, and what is known when that step has no answer.

A file is written whole to a temporary name in the directory of its final one, then renamed by the NameNode:
with `NONE` where nothing may be replaced (the NameNode decides the race), with `OVERWRITE` elsewhere.

What a rename without an answer did is found out by deleting the temporary name, which nobody else knows:

- there was a file: it was never renamed, and now never will be, even if the request arrives late. Certain.
- there was none, or the deletion has no answer either: the object may exist, or may appear later.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import suppress

from delta_core.errors import ObjectExistsError, StorageError, UnsafeStoreError
from delta_core.storage.webhdfs_client import WebHdfsClient, WebHdfsRefusedError
from delta_core.storage.webhdfs_errors import (
    FAILURES,
    WebHdfsFailure,
    blocked,
    did_nothing,
    is_denied,
    not_written,
    translated,
    unclear,
)

TEMPORARY_PREFIX = ".tmp-"

_FENCE_TRIES = 2


class WebHdfsPublisher:
    """Writes files of one HDFS and renames them; `path` is what errors call the object.

    Args:
        client: sends the requests.
        uri: the table's, for errors.
    """

    def __init__(self, client: WebHdfsClient, *, uri: str) -> None:
        self._client = client
        self._uri = uri

    def write(self, target: str, path: str, body: bytes | Iterable[bytes], *, size_bytes: int) -> str:
        """Write a new file beside the target: its temporary name. Two requests.

        Raises:
            NameBlockedError: a file has the name of one of the target's directories.
            NotWrittenError: it failed; nothing is left, unless no NameNode can be reached to delete it.
        """
        temporary = f"{target.rpartition('/')[0]}/{TEMPORARY_PREFIX}{uuid.uuid4()}"
        try:
            self._client.create(temporary, body, size_bytes=size_bytes)
        except BaseException as error:
            with suppress(*FAILURES):
                self._client.delete(temporary)
            if isinstance(error, FAILURES):
                raise not_written(error, path) from error
            raise
        return temporary

    def publish(self, temporary: str, target: str, path: str, *, overwrite: bool) -> None:
        """Give a temporary file its final name, or delete it. One request, and one or two more on failure.

        Raises:
            ObjectExistsError: the name is taken, and may not be.
            NameBlockedError: a directory has the name.
            AmbiguousWriteError: nothing may be replaced, and it is not certain that the file has not got its
                name or will get it.
            StorePermissionError: refused.
            UnsafeStoreError: the server does not know the options of a rename.
            NotWrittenError: certain that nothing happened.
            StorageError: with `overwrite`, not certain, as the text says.
        """
        try:
            knows_options = self._client.rename(temporary, target, overwrite=overwrite)
        except FAILURES as error:
            raise self._failed(error, temporary, target, path, overwrite=overwrite) from error
        if knows_options:
            return
        if self._never_renamed(temporary) or overwrite:
            raise UnsafeStoreError(
                f"The server of {self._uri!r} does not know the options of a rename.",
                cause="Without them an object cannot be replaced in one step, nor be told from a directory.",
                fix="Name a NameNode in the option 'webhdfs_endpoint', not HttpFS.",
            )
        raise unclear(path, "The server answers otherwise than a NameNode.", overwrite=False)

    def _failed(
        self, error: WebHdfsFailure, temporary: str, target: str, path: str, *, overwrite: bool
    ) -> StorageError:
        never_renamed = self._never_renamed(temporary)
        if isinstance(error, WebHdfsRefusedError):
            if error.exception == "FileAlreadyExistsException" and not overwrite:
                return ObjectExistsError(f"{path!r} exists already.", fix="Read it to see whose it is.")
            if is_denied(error):
                return translated(error, path, "create")
            if never_renamed and self._is_directory(target):
                return blocked(path, error)
        if never_renamed or did_nothing(error):
            return not_written(error, path)
        return unclear(path, str(error), overwrite=overwrite)

    def _never_renamed(self, temporary: str) -> bool:
        """Delete the temporary name: whether it is certain that it was not renamed and never will be."""
        try:
            return self._client.delete(temporary, tries=_FENCE_TRIES)
        except FAILURES:
            return False

    def _is_directory(self, target: str) -> bool:
        try:
            return self._client.status(target).kind == "DIRECTORY"
        except FAILURES:
            return False
