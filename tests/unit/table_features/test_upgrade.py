"""Protocols as sets of features: nothing is lost, nothing goes down, and what comes out is legal."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.actions import Protocol
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.upgrade import (
    implied_features,
    lowest_protocol,
    merged,
    new_protocol,
    supported_features,
    with_dependencies,
    with_features,
    with_versions,
)
from tests.support.protocols import protocol_problems

NAMES = st.sets(st.sampled_from(sorted(FEATURES)), max_size=8)
LEGACY = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6)]
PROTOCOLS = st.one_of(
    st.sampled_from(LEGACY).map(
        lambda pair: Protocol(min_reader_version=pair[0], min_writer_version=pair[1])
    ),
    NAMES.map(lambda names: lowest_protocol(with_dependencies(names))),
)


@given(PROTOCOLS, NAMES)
def test_an_upgrade_keeps_all_adds_what_is_asked_for_and_is_legal(
    protocol: Protocol, names: set[str]
) -> None:
    upgraded = with_features(protocol, names)
    assert supported_features(upgraded) == supported_features(protocol) | with_dependencies(names)
    assert upgraded.min_reader_version >= protocol.min_reader_version
    assert upgraded.min_writer_version >= protocol.min_writer_version
    assert protocol_problems(upgraded) == ()
    assert with_features(upgraded, names) is upgraded


@given(NAMES)
def test_a_new_table_has_the_lowest_versions_that_say_what_it_supports(names: set[str]) -> None:
    wanted = with_dependencies(names)
    protocol = lowest_protocol(wanted)
    assert supported_features(protocol) == wanted
    assert protocol_problems(protocol) == ()
    if protocol.min_writer_version == 7:
        assert all(implied_features(*pair) != wanted for pair in LEGACY)
    for_readers = {name for name in wanted if FEATURES[name].in_reader}
    assert (protocol.min_reader_version == 1) <= (not for_readers)
    assert (protocol.min_reader_version == 3) == bool(for_readers - {"columnMapping"})


@given(PROTOCOLS, PROTOCOLS)
def test_two_protocols_together_support_what_either_does(one: Protocol, other: Protocol) -> None:
    both = merged(one, other)
    assert supported_features(both) == supported_features(one) | supported_features(other)
    assert protocol_problems(both) == ()


def test_legacy_versions_stand_for_different_sets() -> None:
    sets = [implied_features(*pair) for pair in LEGACY]
    assert all(one != other for one, other in combinations(sets, 2))
    assert implied_features(2, 2) == implied_features(1, 2)
    assert implied_features(3, 7) == frozenset()


def test_a_legacy_table_names_all_that_it_implied() -> None:
    old = Protocol(min_reader_version=2, min_writer_version=6)
    upgraded = with_features(old, ["timestampNtz"])
    assert upgraded.min_reader_version == 3
    assert upgraded.writer_features == implied_features(2, 6) | {"timestampNtz"}
    assert upgraded.reader_features == {"columnMapping", "timestampNtz"}


def test_column_mapping_leaves_readers_at_version_2_until_there_is_more() -> None:
    mapped = new_protocol(["columnMapping"])
    assert mapped == Protocol(
        min_reader_version=2,
        min_writer_version=7,
        writer_features=frozenset({"columnMapping", "appendOnly", "invariants"}),
    )
    more = with_features(mapped, ["deletionVectors"])
    assert more.reader_features == {"columnMapping", "deletionVectors"}
    assert with_features(mapped, ["changeDataFeed"]).min_reader_version == 2


def test_a_listing_protocol_is_never_brought_back_to_versions() -> None:
    listed = Protocol(
        min_reader_version=1, min_writer_version=7, writer_features=frozenset({"appendOnly", "invariants"})
    )
    upgraded = with_features(listed, ["checkConstraints"])
    assert upgraded.min_writer_version == 7
    assert upgraded.writer_features == {"appendOnly", "invariants", "checkConstraints"}
    readers = Protocol(
        min_reader_version=3, min_writer_version=7, reader_features=frozenset(), writer_features=frozenset()
    )
    assert with_features(readers, ["appendOnly"]).reader_features == frozenset()


def test_lower_versions_change_nothing() -> None:
    protocol = Protocol(min_reader_version=2, min_writer_version=6)
    assert with_versions(protocol, reader_version=1, writer_version=2) is protocol
    assert with_versions(protocol, reader_version=3, writer_version=7) is protocol


def test_names_that_nobody_knows_are_kept_where_they_are() -> None:
    alien = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"alien"}),
        writer_features=frozenset({"alien", "martian"}),
    )
    upgraded = with_features(alien, ["domainMetadata"])
    assert upgraded.reader_features == {"alien"}
    assert upgraded.writer_features == {"alien", "martian", "domainMetadata"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"min_reader_version": 3, "min_writer_version": 6, "reader_features": frozenset()}, "below 7"),
        (
            {"min_reader_version": 3, "min_writer_version": 7, "writer_features": frozenset()},
            "no list of reader",
        ),
        ({"min_reader_version": 1, "min_writer_version": 7}, "no list of writer"),
        ({"min_reader_version": 1, "min_writer_version": 2, "writer_features": frozenset()}, "below writer"),
        ({"min_reader_version": 1, "min_writer_version": 2, "reader_features": frozenset()}, "below reader"),
        (
            {
                "min_reader_version": 3,
                "min_writer_version": 7,
                "reader_features": frozenset({"timestampNtz"}),
                "writer_features": frozenset(),
            },
            "timestampNtz is listed for readers and not for writers",
        ),
        (
            {
                "min_reader_version": 1,
                "min_writer_version": 7,
                "writer_features": frozenset({"columnMapping"}),
            },
            "columnMapping is listed for writers and not for readers",
        ),
        (
            {"min_reader_version": 1, "min_writer_version": 7, "writer_features": frozenset({"rowTracking"})},
            "domainMetadata is missing",
        ),
    ],
)
def test_illegal_protocols_are_told(fields: dict[str, object], problem: str) -> None:
    assert any(problem in found for found in protocol_problems(Protocol(**fields)))  # type: ignore[arg-type]
