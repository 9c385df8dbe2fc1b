"""Changes of the definition: columns, properties, constraints, features, domains, names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from delta_core.errors import ConfigurationError, ConstraintViolationError, UnsupportedTableFeatureError
from delta_core.table_features.feature import ALL_WRITER_KINDS, FEATURES, WriterKind, writer_features
from tests.state_machine.conditions import compare, either, is_null
from tests.state_machine.features import go_together, open_ways
from tests.state_machine.model import KEY, Condition
from tests.state_machine.operations.registry import Draw, operation
from tests.state_machine.values import PLAIN_KINDS, Column

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine

_COMMIT = WriterKind.COMMIT

_CONSTRAINTS: Mapping[str, Condition] = {
    "key": compare(KEY, ">=", 0),
    "small": either(compare("n", "<", 40), is_null("n")),
    "given": is_null("t", negated=True),
    "narrow": compare("n", "<", 90),
}
"""The last one is false for null, which is no truth."""

_PROPERTIES = (
    ("delta.checkpointInterval", ("2", "3", "10")),
    ("delta.dataSkippingNumIndexedCols", ("0", "1", "32")),
    ("delta.checkpoint.writeStatsAsStruct", ("true", "false")),
    ("delta.checkpoint.writeStatsAsJson", ("true", "false")),
    ("delta.appendOnly", ("true", "false")),
    ("delta.targetFileSize", ("1kb", "100mb")),
    ("delta.parquet.compression.codec", ("zstd", "snappy")),
    ("delta.logRetentionDuration", ("interval 10 days", "interval 30 days")),
    ("delta.enableExpiredLogCleanup", ("true", "false")),
    ("deltaward.versionChecksum", ("always", "never", "known")),
    ("deltaward.logCompactionInterval", ("2", "5")),
    ("owner", ("somebody", "")),
)


@operation(when=lambda machine: len(machine.state.columns) < 12)
def add_column(machine: TableMachine, draw: Draw) -> None:
    """A column at the end; older rows are null in it."""
    state = machine.state
    machine.names += 1
    column = Column(name=f"c{machine.names}", kind=draw(st.sampled_from(PLAIN_KINDS)))
    machine.does(
        lambda: machine.table.alter.add_columns(column.to_field()),
        replace(state, columns=(*state.columns, column)),
        writer_kind=_COMMIT,
    )


@operation(when=lambda machine: any(not column.nullable for column in machine.state.columns))
def drop_not_null(machine: TableMachine, draw: Draw) -> None:
    """A column may hold nulls from now on."""
    state = machine.state
    strict = draw(st.sampled_from([one for one in state.columns if not one.nullable]))
    machine.does(
        lambda: machine.table.alter.drop_not_null(strict.name),
        replace(
            state,
            columns=tuple(replace(one, nullable=True) if one == strict else one for one in state.columns),
        ),
        writer_kind=_COMMIT,
    )


@operation
def set_property(machine: TableMachine, draw: Draw) -> None:
    """A property that changes how the table is written, or none that anyone knows."""
    key, values = draw(st.sampled_from(_PROPERTIES))
    value = draw(st.sampled_from(values))
    machine.does(
        lambda: machine.table.alter.set_properties({key: value}),
        replace(machine.state, properties={**machine.state.properties, key: value}),
        writer_kind=_COMMIT,
    )


@operation(when=lambda machine: any(key in machine.state.properties for key, _ in _PROPERTIES))
def unset_property(machine: TableMachine, draw: Draw) -> None:
    """A property is as if it had never been set."""
    state = machine.state
    key = draw(st.sampled_from([key for key, _ in _PROPERTIES if key in state.properties]))
    left = {name: value for name, value in state.properties.items() if name != key}
    machine.does(
        lambda: machine.table.alter.unset_properties(key),
        replace(state, properties=left),
        writer_kind=_COMMIT,
    )
    assert key not in machine.fresh().metadata().configuration or machine.state is state


@operation
def rename_table(machine: TableMachine, draw: Draw) -> None:
    """Name and description."""
    text = draw(st.sampled_from(["orders", "Ü", "it's a table"]))
    if draw(st.booleans()):
        machine.does(
            lambda: machine.table.alter.set_name(text), replace(machine.state, name=text), writer_kind=_COMMIT
        )
    else:
        machine.does(
            lambda: machine.table.alter.set_description(text),
            replace(machine.state, description=text),
            writer_kind=_COMMIT,
        )


@operation(when=lambda machine: len(machine.state.constraints) < 3)
def add_constraint(machine: TableMachine, draw: Draw) -> None:
    """A CHECK constraint; refused where a row that exists breaks it."""
    state = machine.state
    name = draw(st.sampled_from(sorted(_CONSTRAINTS.keys() - state.constraints.keys())))
    condition = _CONSTRAINTS[name]

    def run() -> None:
        machine.table.alter.add_constraint({name: condition.text})

    if not machine.refuses(_COMMIT) and any(condition.holds(row) is not True for row in state.rows.values()):
        machine.fails(ConstraintViolationError, run)
        return
    machine.does(run, replace(state, constraints={**state.constraints, name: condition}), writer_kind=_COMMIT)


@operation(when=lambda machine: bool(machine.state.constraints))
def drop_constraint(machine: TableMachine, draw: Draw) -> None:
    """A CHECK constraint goes."""
    state = machine.state
    name = draw(st.sampled_from(sorted(state.constraints)))
    left = {key: one for key, one in state.constraints.items() if key != name}
    machine.does(
        lambda: machine.table.alter.drop_constraint(name),
        replace(state, constraints=left),
        writer_kind=_COMMIT,
    )


@operation
def add_feature(machine: TableMachine, draw: Draw) -> None:
    """The table lists one more feature, with nothing turned on."""
    written = sorted(
        name
        for name, feature in FEATURES.items()
        if feature.writable_by == ALL_WRITER_KINDS and not feature.requires and not name.endswith("-preview")
    )
    name = draw(st.sampled_from(written))
    if machine.does(lambda: machine.table.alter.add_feature(name), machine.state, writer_kind=_COMMIT):
        assert name in writer_features(machine.fresh().protocol())


@operation(when=lambda machine: any(way.later and way not in machine.ways for way in open_ways()))
def enable_feature(machine: TableMachine, draw: Draw) -> None:
    """A feature is turned on for a table that has rows."""
    chosen = draw(st.sampled_from([way for way in open_ways() if way.later and way not in machine.ways]))
    if not go_together(frozenset({chosen.name, *(way.name for way in machine.ways)})):
        return
    stored = {key: text for key, text in chosen.properties.items() if not key.startswith("delta.feature.")}
    if machine.does(
        lambda: machine.table.alter.set_properties(chosen.properties),
        replace(machine.state, properties={**machine.state.properties, **stored}),
        writer_kind=_COMMIT,
    ):
        machine.ways = (*machine.ways, chosen)


@operation
def set_domain(machine: TableMachine, draw: Draw) -> None:
    """A metadata domain of the user's own."""
    state = machine.state
    domain, text = (
        draw(st.sampled_from(["app.one", "app.two"])),
        draw(st.sampled_from(["{}", '{"a": 1}', ""])),
    )
    if "domainMetadata" not in writer_features(machine.newest.protocol()):
        _set_without_feature(machine, domain, text)
        return
    machine.does(
        lambda: machine.table.alter.set_domain_metadata(domain, text),
        replace(state, domains={**state.domains, domain: text}),
        writer_kind=_COMMIT,
    )


def _set_without_feature(machine: TableMachine, domain: str, text: str) -> None:
    """The feature comes along, or the change is refused: never a domain without the feature."""
    try:
        machine.table.alter.set_domain_metadata(domain, text)
    except (ConfigurationError, UnsupportedTableFeatureError):
        assert machine.fresh().version() == machine.model.latest
        return
    assert "domainMetadata" in writer_features(machine.fresh().protocol())
    machine.settle(replace(machine.state, domains={**machine.state.domains, domain: text}))


@operation(when=lambda machine: bool(machine.state.domains))
def remove_domain(machine: TableMachine, draw: Draw) -> None:
    """A metadata domain goes."""
    state = machine.state
    domain = draw(st.sampled_from(sorted(state.domains)))
    left = {key: text for key, text in state.domains.items() if key != domain}
    machine.does(
        lambda: machine.table.alter.remove_domain_metadata(domain),
        replace(state, domains=left),
        writer_kind=_COMMIT,
    )
