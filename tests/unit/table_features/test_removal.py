"""What may be taken out of a protocol, when, and what is left."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from delta_core.actions import DomainMetadata, Metadata, Protocol
from delta_core.errors import FeatureRemovalError
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION, INTERNAL_PROPERTIES
from delta_core.table_features.removal import plan_removal
from delta_core.table_features.removal_rules import RULES, HistoryRule, TableState
from delta_core.table_features.upgrade import new_protocol, supported_features, with_features
from tests.support.log_builder import NOW_MS, metadata
from tests.support.protocols import protocol_problems

HOUR_MS = 3_600_000


def schema(kind: str = "long", **field_metadata: Any) -> str:
    inner = {"name": "x", "type": kind, "nullable": True, "metadata": field_metadata}
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "s", "type": {"type": "struct", "fields": [inner]}, "nullable": True, "metadata": {}},
    ]
    return json.dumps({"type": "struct", "fields": fields})


def state(protocol: Protocol, given: Metadata | None = None, **changes: Any) -> TableState:
    fields: dict[str, Any] = {
        "has_deletion_vectors": False,
        "has_removed_deletion_vectors": False,
        "has_v2_checkpoint": False,
        "has_row_ids": False,
        "version": 9,
        "clean_since_version": 0,
    }
    return TableState(
        protocol=protocol,
        metadata=metadata(schema_string=schema(), partition_columns=()) if given is None else given,
        **fields | changes,
    )


def with_field(kind: str = "long", **field_metadata: Any) -> Metadata:
    return metadata(schema_string=schema(kind, **field_metadata), partition_columns=())


def with_properties(**properties: str) -> Metadata:
    given = {f"delta.{key.replace('__', '.')}": value for key, value in properties.items()}
    return metadata(schema_string=schema(), partition_columns=(), configuration=given)


NOT_NULL = metadata(schema_string=schema().replace('"nullable": true', '"nullable": false', 1))
USED: dict[str, TableState] = {
    "appendOnly": state(new_protocol([]), with_properties(appendOnly="true")),
    "invariants": state(new_protocol([]), NOT_NULL),
    "checkConstraints": state(new_protocol(["checkConstraints"]), with_properties(constraints__C="id > 0")),
    "changeDataFeed": state(new_protocol(["changeDataFeed"]), with_properties(enableChangeDataFeed="true")),
    "generatedColumns": state(
        new_protocol(["generatedColumns"]), with_field(**{"delta.generationExpression": "1"})
    ),
    "identityColumns": state(new_protocol(["identityColumns"]), with_field(**{"delta.identity.start": 1})),
    "allowColumnDefaults": state(new_protocol(["allowColumnDefaults"]), with_field(CURRENT_DEFAULT="1")),
    "columnMapping": state(new_protocol(["columnMapping"]), with_properties(columnMapping__mode="name")),
    "timestampNtz": state(new_protocol(["timestampNtz"]), with_field("timestamp_ntz")),
    "domainMetadata": state(
        new_protocol(["domainMetadata"]), domains={"a": DomainMetadata(domain="a", configuration="")}
    ),
    "deletionVectors": state(new_protocol(["deletionVectors"]), has_deletion_vectors=True),
    "v2Checkpoint": state(new_protocol(["v2Checkpoint"]), has_v2_checkpoint=True),
    "rowTracking": state(new_protocol(["rowTracking"]), with_properties(enableRowTracking="true")),
    "inCommitTimestamp": state(
        new_protocol(["inCommitTimestamp"]), with_properties(enableInCommitTimestamps="true")
    ),
    "clustering": state(
        new_protocol(["clustering"]),
        domains={
            "delta.clustering": DomainMetadata(
                domain="delta.clustering", configuration='{"clusteringColumns":[["id"]]}'
            )
        },
    ),
    "checkpointProtection": state(
        new_protocol(["checkpointProtection"]), with_properties(requireCheckpointProtectionBeforeVersion="5")
    ),
    "icebergCompatV1": state(
        new_protocol(["icebergCompatV1"]), with_properties(enableIcebergCompatV1="true")
    ),
    "icebergCompatV2": state(
        new_protocol(["icebergCompatV2"]), with_properties(enableIcebergCompatV2="true")
    ),
    "materializePartitionColumns": state(
        new_protocol(["materializePartitionColumns"]),
        with_properties(enableMaterializePartitionColumnsFeature="true"),
    ),
    "typeWidening": state(new_protocol(["typeWidening"]), with_field(**{"delta.typeChanges": [{}]})),
    "typeWidening-preview": state(
        new_protocol(["typeWidening-preview"]), with_properties(enableTypeWidening="true")
    ),
    "variantType": state(new_protocol(["variantType"]), with_field("variant")),
    "variantType-preview": state(new_protocol(["variantType-preview"]), with_field("variant")),
}
"""A table that uses each feature."""


@pytest.mark.parametrize("name", sorted(USED))
def test_what_is_in_use_is_not_dropped(name: str) -> None:
    plan = plan_removal(USED[name], name)
    assert plan.traces
    assert not plan.is_ready
    with pytest.raises(FeatureRemovalError, match=f"feature {name} cannot be dropped now") as caught:
        plan.require_ready()
    assert plan.traces[0].what in caught.value.cause
    assert plan.traces[0].remedy in caught.value.fix


@pytest.mark.parametrize("name", sorted(RULES))
def test_what_is_not_in_use_is_dropped_and_leaves_a_legal_protocol(name: str) -> None:
    kept = {
        INTERNAL_PROPERTIES[key].key: "col" for key in RULES[name].properties if key in INTERNAL_PROPERTIES
    }
    if name == "checkpointProtection":
        kept = {CHECKPOINT_PROTECTION: "5"}
    given = metadata(schema_string=schema(), configuration={**kept, "owner": "ann"})
    before = state(new_protocol([name, "vacuumProtocolCheck"]), given, oldest_version=5)
    plan = plan_removal(before, name)
    plan.require_ready()
    assert plan.is_ready
    assert supported_features(plan.protocol) == supported_features(before.protocol) - {name}
    assert protocol_problems(plan.protocol) == ()
    assert plan.metadata == replace(given, configuration={"owner": "ann"})


def test_every_feature_has_a_rule_or_is_known_to_have_none() -> None:
    assert set(FEATURES) - set(RULES) == {
        "variantShredding",
        "variantShredding-preview",
        "inCommitTimestamp-preview",
    }
    assert set(USED) == set(RULES) - {"vacuumProtocolCheck"}
    # What readers must know may be in older versions; this one asks nothing of who reads.
    for name, rule in RULES.items():
        wanted = FEATURES[name].in_reader and name != "vacuumProtocolCheck"
        assert (rule.history is HistoryRule.WITHOUT_TRACES) == wanted


@pytest.mark.parametrize("name", ["deletionVectors", "ofTomorrow", "variantShredding"])
def test_what_is_not_there_or_has_no_rule_is_not_dropped(name: str) -> None:
    supported = ["variantShredding"] if name == "variantShredding" else []
    with pytest.raises(FeatureRemovalError, match=name):
        plan_removal(state(new_protocol(supported)), name)


def test_what_another_feature_requires_stays() -> None:
    plan = plan_removal(state(new_protocol(["rowTracking", "clustering"])), "domainMetadata")
    assert plan.dependents == ("clustering", "rowTracking")
    with pytest.raises(FeatureRemovalError, match="domainMetadata") as caught:
        plan.require_ready()
    assert "rowTracking requires it" in caught.value.cause
    mapped = state(new_protocol(["icebergCompatV2"]))
    assert plan_removal(mapped, "columnMapping").dependents == ("icebergCompatV2",)


def test_domains_of_a_feature_go_with_what_they_said() -> None:
    domain = DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":9}')
    other = DomainMetadata(domain="team", configuration="x")
    before = state(new_protocol(["rowTracking"]), domains={"delta.rowTracking": domain, "team": other})
    plan = plan_removal(before, "rowTracking")
    assert plan.is_ready
    assert plan.domains == (replace(domain, removed=True),)


def test_a_removed_domain_is_no_trace() -> None:
    gone = DomainMetadata(domain="a", configuration="", removed=True)
    assert plan_removal(
        state(new_protocol(["domainMetadata"]), domains={"a": gone}), "domainMetadata"
    ).is_ready
    unreadable = DomainMetadata(domain="delta.clustering", configuration="?")
    damaged = state(new_protocol(["clustering"]), domains={"delta.clustering": unreadable})
    assert plan_removal(damaged, "clustering").traces


class TestHistory:
    PROTOCOL = new_protocol(["deletionVectors"])

    def test_nobody_has_looked(self) -> None:
        plan = plan_removal(state(self.PROTOCOL, clean_since_version=None), "deletionVectors")
        assert (plan.is_ready, plan.truncate_before_version, plan.wait_until_ms) == (False, None, None)
        with pytest.raises(FeatureRemovalError, match="deletionVectors") as caught:
            plan.require_ready()
        assert "Versions that are still in the log may use it" in caught.value.cause

    def test_the_log_goes_back_too_far(self) -> None:
        plan = plan_removal(
            state(self.PROTOCOL, clean_since_version=7, clean_since_ms=NOW_MS, oldest_version=6),
            "DELETIONVECTORS",
        )
        assert (plan.is_ready, plan.truncate_before_version) == (False, 7)
        assert plan.wait_until_ms == NOW_MS + 24 * HOUR_MS

    def test_the_table_says_how_long_to_wait(self) -> None:
        given = with_properties(dropFeatureTruncateHistory__retentionDuration="interval 2 hours")
        plan = plan_removal(
            state(self.PROTOCOL, given, clean_since_version=7, clean_since_ms=NOW_MS), "deletionVectors"
        )
        assert plan.wait_until_ms == NOW_MS + 2 * HOUR_MS

    def test_the_log_begins_after_the_last_trace(self) -> None:
        plan = plan_removal(state(self.PROTOCOL, clean_since_version=7, oldest_version=7), "deletionVectors")
        assert plan.is_ready
        assert plan.protocol == new_protocol([])

    def test_tombstones_count(self) -> None:
        removed = plan_removal(state(self.PROTOCOL, has_removed_deletion_vectors=True), "deletionVectors")
        assert [trace.what for trace in removed.traces] == [
            "The log has a tombstone with a deletion vector for the path of a live file."
        ]

    def test_instead_of_waiting_the_log_is_protected(self) -> None:
        plan = plan_removal(state(self.PROTOCOL, clean_since_version=None), "deletionVectors")
        fast = plan.with_protection(version=10)
        assert fast.is_ready
        assert supported_features(fast.protocol) == {"appendOnly", "invariants", "checkpointProtection"}
        assert fast.metadata.configuration[CHECKPOINT_PROTECTION] == "10"
        assert protocol_problems(fast.protocol) == ()
        protected = with_properties(requireCheckpointProtectionBeforeVersion="12")
        again = plan_removal(state(self.PROTOCOL, protected), "deletionVectors").with_protection(version=10)
        assert again.metadata.configuration[CHECKPOINT_PROTECTION] == "12"

    def test_protection_helps_against_no_trace(self) -> None:
        used = plan_removal(USED["deletionVectors"], "deletionVectors").with_protection(version=10)
        assert not used.is_ready

    def test_where_history_does_not_matter_nothing_is_protected(self) -> None:
        plan = plan_removal(state(new_protocol(["changeDataFeed"])), "changeDataFeed")
        assert plan.with_protection(version=10) is plan

    def test_protection_goes_when_the_protected_log_is_gone(self) -> None:
        given = with_properties(requireCheckpointProtectionBeforeVersion="5")
        before = state(new_protocol(["checkpointProtection"]), given, oldest_version=5)
        plan = plan_removal(before, "checkpointProtection")
        assert plan.is_ready
        assert CHECKPOINT_PROTECTION not in plan.metadata.configuration
        wrong = with_properties(requireCheckpointProtectionBeforeVersion="soon")
        assert plan_removal(replace(before, metadata=wrong), "checkpointProtection").traces


def test_a_legacy_table_lists_what_is_left() -> None:
    plan = plan_removal(state(Protocol(min_reader_version=1, min_writer_version=4)), "generatedColumns")
    assert plan.protocol.min_writer_version == 7
    assert plan.protocol.writer_features == {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
    }


def test_names_that_nobody_knows_stay_where_they_are() -> None:
    alien = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"alien"}),
        writer_features=frozenset({"alien"}),
    )
    before = state(with_features(alien, ["timestampNtz", "domainMetadata"]))
    assert plan_removal(before, "domainMetadata").protocol == with_features(alien, ["timestampNtz"])
    assert plan_removal(before, "timestampNtz").protocol.reader_features == {"alien"}
