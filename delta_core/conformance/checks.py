"""The checks of a run, in order, with the usual cause and fix of a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from delta_core.conformance import objects, processes
from delta_core.conformance.check import Check, Context
from delta_core.conformance.contract import CONTRACT
from delta_core.conformance.expectations import require
from delta_core.errors import DeltaError, StoreContractError
from delta_core.storage.log_store import LogStore

_NEEDS_DELETE: Final = frozenset({"delete_removes", "only_unchanged_objects_are_deleted"})


def _contract(context: Context) -> str:
    """The guarantees of `delta_core.conformance.LogStoreContract`, each in a directory of its own."""
    broken: list[str] = []
    run = [name for name in CONTRACT if context.may_delete or name not in _NEEDS_DELETE]
    for name in run:
        try:
            _one(CONTRACT[name], context.place.store(f"contract/{name}"))
        except DeltaError as error:
            broken.append(f"{name}: {error}")
    require(not broken, f"{len(broken)} of {len(run)} guarantees do not hold. {' '.join(broken)}")
    return f"{len(run)} guarantees of the store's interface hold"


def _one(guarantee: Callable[[LogStore], None], store: LogStore) -> None:
    try:
        guarantee(store)
    except (AssertionError, ValueError, OSError) as error:
        raise StoreContractError(f"{type(error).__name__}: {error}") from error


_PROXY: Final = "Connect to the store itself, without a cache, gateway or proxy."

ACCESS: Final = Check(
    name="access",
    title="Objects are written, read and listed",
    run=objects.access,
    cause="The address, the credentials or their permissions are wrong.",
    fix="Check the URI and the storage options. A writer needs permission to list, get and put.",
    decides_writers=True,
)

PRECONDITIONS: Final = Check(
    name="preconditions",
    title="A name is created once",
    run=objects.preconditions,
    cause="The store ignores the precondition of create-only writes.",
    fix="Use a store that honours If-None-Match, or S3 with DynamoDB: AWS_S3_LOCKING_PROVIDER=dynamodb.",
    decides_writers=True,
)

CHECKS: Final = (
    Check(
        name="contract",
        title="The interface keeps its contract",
        run=_contract,
        cause="The store or its client violates the contract of the interface.",
        fix="Report it with the message above. delta_core.conformance.LogStoreContract is a pytest suite of "
        "the same checks.",
        seconds=30.0,
    ),
    Check(
        name="delete",
        title="Objects are deleted",
        run=objects.deleting,
        cause="Deleted objects can still be read.",
        fix=_PROXY,
        deletes=True,
    ),
    Check(
        name="ranges",
        title="Parts of an object are read",
        run=objects.ranges,
        cause="The store ignores the range of a request.",
        fix=_PROXY,
    ),
    Check(
        name="names",
        title="Names with any character are kept",
        run=objects.odd_names,
        cause="Names are encoded differently when they are written, listed and read.",
        fix="Do not use partition values with such characters on this store.",
        seconds=15.0,
    ),
    Check(
        name="large-commit",
        title="A large object is created once",
        run=objects.large_commit,
        cause="Large create-only writes are split, cut off, or lose their precondition.",
        fix="Raise the limit of the request size in front of the store.",
        seconds=20.0,
        decides_writers=True,
    ),
    Check(
        name="listing",
        title="Listings are complete and current",
        run=objects.listing,
        cause="Pages of a listing overlap, omit names or are out of order.",
        fix=_PROXY,
        seconds=25.0,
        decides_writers=True,
    ),
    Check(
        name="unclear-writes",
        title="A write without an answer is settled by reading back",
        run=objects.timeouts,
        cause="A write without an answer was stored in part, or changed an object that was read back.",
        fix=_PROXY,
        seconds=20.0,
        decides_writers=True,
    ),
    Check(
        name="race",
        title="One of racing writers wins",
        run=processes.create_only_race,
        cause="The store checks whether the name is free and then writes, instead of doing both in one step.",
        fix="Do not let several writers commit there, or decide commits in DynamoDB.",
        seconds=25.0,
        decides_writers=True,
        with_workers=True,
    ),
    Check(
        name="forward-probes",
        title="A new version is seen at once",
        run=processes.forward_probes,
        cause="A cache between this machine and the store keeps the answer that a name is missing.",
        fix=_PROXY,
        decides_writers=True,
        with_workers=True,
    ),
    Check(
        name="killed-writers",
        title="A killed writer leaves a complete object or nothing",
        run=processes.killed_writers,
        cause="Objects appear before they are complete.",
        fix="Use another connection to the same store: this one shows parts of commits.",
        seconds=20.0,
        decides_writers=True,
    ),
    Check(
        name="commits",
        title="Every commit is in exactly one version",
        run=processes.concurrent_commits,
        cause="Commits overwrite each other or get lost.",
        fix="Do not let several writers commit there. Report the message above.",
        seconds=40.0,
        decides_writers=True,
        with_workers=True,
    ),
)
"""The checks that run when ACCESS and PRECONDITIONS passed."""
