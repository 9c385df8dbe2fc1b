"""Which types may become which."""

from __future__ import annotations

import pytest

from delta_core.schema.json import type_from_name
from delta_core.table_features.type_widening import widens

WIDENINGS = {
    "byte": ["short", "integer", "long", "double", "decimal(3,0)", "decimal(10,0)", "decimal(4,1)"],
    "short": ["integer", "long", "double", "decimal(5,0)"],
    "integer": ["long", "double", "decimal(10,0)", "decimal(12,2)"],
    "long": ["decimal(20,0)", "decimal(22,2)"],
    "float": ["double"],
    "date": ["timestamp_ntz"],
    "decimal(5,2)": ["decimal(6,2)", "decimal(7,4)", "decimal(38,10)"],
}
NO_WIDENINGS = {
    "byte": ["byte", "float", "decimal(2,0)", "string"],
    "integer": ["short", "float", "decimal(10,1)"],
    "long": ["double", "integer", "decimal(19,0)", "timestamp"],
    "double": ["float", "string"],
    "date": ["timestamp", "string"],
    "decimal(5,2)": ["decimal(5,2)", "decimal(5,3)", "double", "decimal(4,2)"],
    "boolean": ["integer"],
    "string": ["long"],
}


@pytest.mark.parametrize("before", WIDENINGS)
def test_widenings(before: str) -> None:
    for after in WIDENINGS[before]:
        assert widens(type_from_name(before), type_from_name(after)), after


@pytest.mark.parametrize("before", NO_WIDENINGS)
def test_no_widenings(before: str) -> None:
    for after in NO_WIDENINGS[before]:
        assert not widens(type_from_name(before), type_from_name(after)), after
