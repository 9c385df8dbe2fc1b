"""Errors of stores."""

from __future__ import annotations

from delta_core.errors.base import DeltaError


class StorageError(DeltaError):
    """The store failed; nothing is known to be wrong with the table."""

    code = "STORAGE_ERROR"
    retryable = True


class ObjectNotFoundError(StorageError):
    """The named object does not exist."""

    code = "OBJECT_NOT_FOUND"
    retryable = False


class ObjectExistsError(StorageError):
    """A create-only write found the name taken. Proves nothing about whose object it is."""

    code = "OBJECT_EXISTS"
    retryable = False


class AmbiguousWriteError(StorageError):
    """A create-only write failed in a way that leaves open whether it landed."""

    code = "AMBIGUOUS_WRITE"


class StorePermissionError(StorageError):
    """The store refused access."""

    code = "STORE_PERMISSION_DENIED"
    retryable = False


class WriteRefusedError(StorageError):
    """The store cannot carry out a write, such as into a bucket that is not there. Nothing was created."""

    code = "WRITE_REFUSED"
    retryable = False


class StorageFullError(WriteRefusedError):
    """There is no room left, or a quota is used up: nothing was created; once there is room it works."""

    code = "STORAGE_FULL"
    retryable = True


class NotWrittenError(StorageError):
    """A write failed before anything could take effect: nothing was written, nor will be later.

    The same call may succeed. Of a failure that leaves any doubt, `AmbiguousWriteError` is raised.
    """

    code = "NOT_WRITTEN"


class NameBlockedError(StorageError):
    """A name is taken by something that is no object, such as a directory. Nothing was created."""

    code = "NAME_BLOCKED"
    retryable = False


class UnsafeStoreError(StorageError):
    """The store cannot create a file exclusively, so commits could overwrite each other."""

    code = "UNSAFE_STORE"
    retryable = False


class StoreContractError(StorageError):
    """A store does not keep what `LogStore` promises; raised by the checks of `delta_core.conformance`."""

    code = "STORE_CONTRACT_BROKEN"
    retryable = False
