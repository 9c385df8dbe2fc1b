"""Errors of stores."""

from __future__ import annotations

from delta_core.errors.base import DeltaError


class StorageError(DeltaError):
    """The store failed. The error does not mean that the table is damaged."""

    code = "STORAGE_ERROR"
    retryable = True


class ObjectNotFoundError(StorageError):
    """The named object does not exist."""

    code = "OBJECT_NOT_FOUND"
    retryable = False


class ObjectExistsError(StorageError):
    """The name of a create-only write is taken. The error does not show who created the object."""

    code = "OBJECT_EXISTS"
    retryable = False


class AmbiguousWriteError(StorageError):
    """A create-only write failed, and it is not known whether the object was created."""

    code = "AMBIGUOUS_WRITE"


class StorePermissionError(StorageError):
    """The store refused access."""

    code = "STORE_PERMISSION_DENIED"
    retryable = False


class WriteRefusedError(StorageError):
    """The store cannot carry out a write, such as into a bucket that does not exist. Nothing was created."""

    code = "WRITE_REFUSED"
    retryable = False


class StorageFullError(WriteRefusedError):
    """The disk is full or a quota is used up. Nothing was created. A retry can succeed once space is free."""

    code = "STORAGE_FULL"
    retryable = True


class NotWrittenError(StorageError):
    """A write failed before it could take effect: nothing was written, and nothing will be written later.

    The same call may succeed. A failure with any doubt about its effect raises `AmbiguousWriteError` instead.
    """

    code = "NOT_WRITTEN"


class NameBlockedError(StorageError):
    """Something other than an object, such as a directory, has the name. Nothing was created."""

    code = "NAME_BLOCKED"
    retryable = False


class UnsafeStoreError(StorageError):
    """The store cannot create a file exclusively, so commits could overwrite each other."""

    code = "UNSAFE_STORE"
    retryable = False


class StoreContractError(StorageError):
    """A store breaks the contract of `LogStore`. Raised by the checks of `delta_core.conformance`."""

    code = "STORE_CONTRACT_BROKEN"
    retryable = False
