"""Changes of the table's definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from delta_core.dml.definition.columns import add_columns, drop_not_null
from delta_core.dml.definition.constraints import add_constraint, drop_constraint
from delta_core.dml.definition.domains import set_domain_metadata
from delta_core.dml.definition.features import add_feature
from delta_core.dml.definition.properties import set_description, set_properties, unset_properties
from delta_core.run import Run
from delta_core.schema.types import STRING, TIMESTAMP_NTZ, StructField
from tests.concurrency.matrix.footprint import Footprint, MetadataChange
from tests.concurrency.matrix.operation import Case, Operation
from tests.concurrency.matrix.state import CHECK, OWNER, TableState

_RETENTION = {"delta.logRetentionDuration": "interval 60 days"}
_STATISTICS = {"delta.dataSkippingNumIndexedCols": "8"}


def _definition(
    name: str,
    commits: str,
    change: Callable[..., object],
    effect: Callable[[TableState], TableState],
    *,
    metadata: MetadataChange = MetadataChange.DEMANDING,
    protocol: bool = False,
    reads_all: bool = False,
) -> Operation:
    def run(case: Case) -> object:
        # These take a snapshot and commit at once: what they are interrupted at is the snapshot's age.
        case.interruption()
        return change(case.snapshot, run=Run(commit=case.properties))

    return Operation(
        name=name,
        commits=(commits,),
        placed=False,
        run=run,
        footprint=lambda target: Footprint(metadata=metadata, protocol=protocol, reads_all=reads_all),
        effect=lambda state, target: effect(state),
    )


DEFINITIONS = (
    _definition(
        "set a property of the log",
        "SET TBLPROPERTIES",
        lambda snapshot, **options: set_properties(snapshot, _RETENTION, **options),
        lambda state: state.with_properties(_RETENTION),
        metadata=MetadataChange.INERT,
    ),
    _definition(
        "set a property of files",
        "SET TBLPROPERTIES",
        lambda snapshot, **options: set_properties(snapshot, _STATISTICS, **options),
        lambda state: state.with_properties(_STATISTICS),
    ),
    _definition(
        "unset a property",
        "UNSET TBLPROPERTIES",
        lambda snapshot, **options: unset_properties(snapshot, [OWNER], **options),
        lambda state: state.with_properties({OWNER: None}),
        metadata=MetadataChange.INERT,
    ),
    _definition(
        "describe",
        "SET TABLE DESCRIPTION",
        lambda snapshot, **options: set_description(snapshot, description="what is in it", **options),
        lambda state: replace(state, description="what is in it"),
        metadata=MetadataChange.INERT,
    ),
    _definition(
        "add a column",
        "ADD COLUMNS",
        lambda snapshot, **options: add_columns(
            snapshot, [StructField(name="note", data_type=STRING)], **options
        ),
        lambda state: state.with_column("note"),
    ),
    _definition(
        "add a column of a new feature",
        "ADD COLUMNS",
        lambda snapshot, **options: add_columns(
            snapshot, [StructField(name="at", data_type=TIMESTAMP_NTZ)], **options
        ),
        lambda state: state.with_column("at"),
        protocol=True,
    ),
    _definition(
        "drop not null",
        "CHANGE COLUMN",
        lambda snapshot, **options: drop_not_null(snapshot, ["id"], **options),
        lambda state: replace(state, not_null=frozenset()),
    ),
    _definition(
        "add a constraint",
        "ADD CONSTRAINT",
        lambda snapshot, **options: add_constraint(snapshot, "small", "id < 1000", **options),
        lambda state: state.with_properties({"delta.constraints.small": ""}),
        reads_all=True,
    ),
    _definition(
        "drop a constraint",
        "DROP CONSTRAINT",
        lambda snapshot, **options: drop_constraint(snapshot, CHECK, **options),
        lambda state: state.with_properties({f"delta.constraints.{CHECK}": None}),
    ),
    _definition(
        "add a feature",
        "ADD FEATURE",
        lambda snapshot, **options: add_feature(snapshot, "timestampNtz", **options),
        lambda state: state,
        metadata=MetadataChange.NONE,
        protocol=True,
    ),
    _definition(
        "set the first domain",
        "SET DOMAIN METADATA",
        lambda snapshot, **options: set_domain_metadata(snapshot, "team", "{}", **options),
        lambda state: state,
        metadata=MetadataChange.NONE,
        protocol=True,
    ),
)
