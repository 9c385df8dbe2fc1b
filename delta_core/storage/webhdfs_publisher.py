"""Publishing an object on HDFS in one step, and the outcome when that step has no answer.

A complete file is written under a temporary name in the target's directory, then renamed by the NameNode:
with `NONE` when nothing may be replaced (the NameNode decides the race), otherwise with `OVERWRITE`.

The outcome of a rename without an answer is found by deleting the temporary name, which is unique:

- The deletion removed a file: it was never renamed, and never will be, even if the request arrives late.
- The deletion found no file, or the deletion has no answer either: the object may exist, or may appear later.
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
    """Writes files of one HDFS and renames them. `path` is the name of the object in errors.

    Args:
        client: sends the requests.
        uri: the table's URI, for errors.
    """

    def __init__(self, client: WebHdfsClient, *, uri: str) -> None:
        self._client = client
        self._uri = uri

    def write(self, target: str, path: str, body: bytes | Iterable[bytes], *, size_bytes: int) -> str:
        """Write a new file next to the target and return its temporary name. Two requests.

        Raises:
            NameBlockedError: a file has the name of one of the target's directories.
            NotWrittenError: the write failed; no file remains, unless it could not be deleted.
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
        """Give a temporary file its final name, or delete it. One request; one or two more on failure.

        Raises:
            ObjectExistsError: the name is taken, and may not be replaced.
            NameBlockedError: a directory has the name.
            AmbiguousWriteError: nothing may be replaced, and it is not certain that the file does not have
                its final name and never will.
            StorePermissionError: refused.
            UnsafeStoreError: the server does not know the options of a rename.
            NotWrittenError: the rename certainly did not happen.
            StorageError: with `overwrite`, the outcome is not certain, as the message states.
        """
        try:
            knows_options = self._client.rename(temporary, target, overwrite=overwrite)
        except FAILURES as error:
            raise self._failed(error, temporary, target, path, overwrite=overwrite) from error
        if knows_options:
            return
        if self._never_renamed(temporary) or overwrite:
            raise UnsafeStoreError(
                f"The server of {self._uri!r} does not support the options of a rename.",
                cause="Without them an object cannot be replaced in one step.",
                fix="Set the option 'webhdfs_endpoint' to a NameNode, not to HttpFS.",
            )
        raise unclear(path, "The response differs from a NameNode's.", overwrite=False)

    def _failed(
        self, error: WebHdfsFailure, temporary: str, target: str, path: str, *, overwrite: bool
    ) -> StorageError:
        never_renamed = self._never_renamed(temporary)
        if isinstance(error, WebHdfsRefusedError):
            if error.exception == "FileAlreadyExistsException" and not overwrite:
                return ObjectExistsError(
                    f"{path!r} exists already.", fix="Read it to see which writer created it."
                )
            if is_denied(error):
                return translated(error, path, "create")
            if never_renamed and self._is_directory(target):
                return blocked(path, error)
        if never_renamed or did_nothing(error):
            return not_written(error, path)
        return unclear(path, str(error), overwrite=overwrite)

    def _never_renamed(self, temporary: str) -> bool:
        """Delete the temporary name. Returns whether the file certainly never gets its final name."""
        try:
            return self._client.delete(temporary, tries=_FENCE_TRIES)
        except FAILURES:
            return False

    def _is_directory(self, target: str) -> bool:
        try:
            return self._client.status(target).kind == "DIRECTORY"
        except FAILURES:
            return False
