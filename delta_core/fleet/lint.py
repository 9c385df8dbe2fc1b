"""Problems of a policy file that no single setting shows. Reads no data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from delta_core.errors import DeltaError
from delta_core.fleet.registry import FleetTable, Registry
from delta_core.leases.pins import pins_in_force
from delta_core.policies.fleet_model import Mode
from delta_core.policies.load import Policies
from delta_core.policies.resolve import canonical
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store, options_for

ERROR: Final = "error"
WARNING: Final = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem of a policy file.

    Attributes:
        severity: `error` when a run could do harm or leave a table out, else `warning`.
        rule: a name for the kind of problem.
        at: the key in the file, or the URI.
    """

    severity: str
    rule: str
    at: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """The problem as a JSON object."""
        return asdict(self)


def lint(
    registry: Registry,
    *,
    storage_options: Mapping[str, str] | None = None,
    opening: bool = True,
) -> tuple[Problem, ...]:
    """The problems of a policy file and its tables, errors first.

    Unknown keys and values that are not valid never get here: `load_policies` refuses them.

    Args:
        registry: the registry of the policy file, with discovery.
        storage_options: options of the stores of the tables.
        opening: also look for missing tables and for pins that outlast the retention. One listing and the
            requests of opening for each table, and one listing of its pins.
    """
    problems = [
        *_two_names(registry.policies),
        *_nested(registry.tables),
        *_unreachable_patterns(registry),
        *_contradictions(registry.tables),
        *_unmanaged(registry),
        *_too_deep(registry),
    ]
    if opening:
        for table in registry.tables:
            problems += _in_store(table, storage_options)
    return tuple(sorted(problems, key=lambda item: (item.severity != ERROR, item.rule, item.at)))


def _two_names(policies: Policies) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, entry in policies.model.tables.items():
        uri = canonical(entry.uri)
        other = first.setdefault(uri, name)
        if other != name:
            yield Problem(
                severity=ERROR,
                rule="two-names",
                at=f"tables.{name}",
                message=f"{name} and {other} are the same table {uri}; only the policy of {other} applies.",
            )


def _nested(tables: Iterable[FleetTable]) -> Iterator[Problem]:
    outer: str | None = None
    for uri in sorted(f"{table.uri.rstrip('/')}/" for table in tables):
        if outer is not None and uri.startswith(outer) and uri != outer:
            yield Problem(
                severity=ERROR,
                rule="nested-roots",
                at=uri.rstrip("/"),
                message=f"The table is inside the table {outer.rstrip('/')}, whose vacuum sees its files.",
            )
        else:
            outer = uri


def _unreachable_patterns(registry: Registry) -> Iterator[Problem]:
    for index, pattern in enumerate(registry.policies.model.patterns):
        if not any(
            fnmatchcase(candidate, pattern.match)
            for table in registry.tables
            for candidate in (table.name, table.uri)
        ):
            yield Problem(
                severity=WARNING,
                rule="unreachable-pattern",
                at=f"patterns[{index}]",
                message=f"The pattern {pattern.match!r} matches no table.",
            )


def _contradictions(tables: Iterable[FleetTable]) -> Iterator[Problem]:
    for table in tables:
        policy, at = table.policy, f"tables.{table.name}"
        disabled = {
            "optimize": not policy.compaction.enabled,
            "cluster": not policy.clustering.enabled,
            "checkpoint": not policy.checkpoint.enabled,
            "vacuum": not policy.vacuum.enabled or policy.vacuum.dry_run,
        }
        for verb in policy.approval.verbs:
            if disabled[verb]:
                yield Problem(
                    severity=WARNING,
                    rule="contradiction",
                    at=at,
                    message=f"The policy wants an approval for {verb}, which it never runs.",
                )
        if policy.mode is not Mode.APPLY and policy.windows:
            yield Problem(
                severity=WARNING,
                rule="contradiction",
                at=at,
                message=f"The policy has windows, but its mode {policy.mode.value} runs nothing by itself.",
            )
        if policy.cooldown_hours > policy.max_age_hours:
            yield Problem(
                severity=ERROR,
                rule="contradiction",
                at=at,
                message=f"cooldown_hours ({policy.cooldown_hours:g}) is longer than max_age_hours "
                f"({policy.max_age_hours:g}), so a verb can be late by the policy itself.",
            )


def _unmanaged(registry: Registry) -> Iterator[Problem]:
    for table in registry.unmanaged:
        yield Problem(
            severity=WARNING,
            rule="unmanaged",
            at=table.uri,
            message="The table was discovered, and only the defaults apply to it.",
        )


def _too_deep(registry: Registry) -> Iterator[Problem]:
    for prefix, discovery in zip(registry.policies.model.fleet.prefixes, registry.discoveries, strict=False):
        for path in discovery.too_deep:
            yield Problem(
                severity=WARNING,
                rule="depth",
                at=f"{prefix.uri.rstrip('/')}/{path}",
                message=f"Directories below depth {prefix.depth} were not searched.",
            )


def _in_store(table: FleetTable, storage_options: Mapping[str, str] | None) -> Iterator[Problem]:
    try:
        store = open_store(table.uri, storage_options=options_for(table.uri, storage_options))
        snapshot = Snapshot.load(store)
        pins = pins_in_force(store, store_now_ms=snapshot.clock.now_ms())
    except DeltaError as error:
        yield Problem(severity=ERROR, rule="missing-table", at=table.uri, message=str(error))
        return
    if pins and table.policy.vacuum.enabled and not table.policy.vacuum.dry_run:
        oldest = min(pins, key=lambda pin: pin.version)
        yield Problem(
            severity=WARNING,
            rule="pinned",
            at=table.uri,
            message=f"{oldest.holder} pins version {oldest.version}: vacuum keeps its files beyond the "
            "retention.",
        )
    changes = snapshot.properties.deleted_file_retention_ms
    hours = table.policy.vacuum.retention_hours
    if hours is not None and hours * 3_600_000 < changes:
        yield Problem(
            severity=ERROR,
            rule="retention",
            at=table.uri,
            message=f"vacuum.retention_hours ({hours:g}) is shorter than the table's "
            f"delta.deletedFileRetentionDuration ({changes / 3_600_000:g} h), which readers rely on.",
        )
