"""The `quality` object of a load's parameters, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from delta_core.errors import InvalidJobSpecError

DEFAULT_SAMPLES: Final = 5
MAX_SAMPLES: Final = 20
"""GX hands out at most this many of an expectation's unexpected values."""


class OnFailure(StrEnum):
    """What becomes of a batch that does not meet its suite."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    WARN = "warn"


class Severity(StrEnum):
    """Whether a failed expectation may stop the batch."""

    CRITICAL = "critical"
    WARNING = "warning"


class QualityEngine(StrEnum):
    """Where the rows are judged: in the driver's process, or by Spark's tasks. What is judged is the same.

    `pandas` is an older name of `driver`.
    """

    AUTO = "auto"
    DRIVER = "driver"
    PANDAS = "pandas"
    SPARK = "spark"


QUALITY_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["object", "null"],
    "required": ["suite"],
    "additionalProperties": False,
    "description": "the staged rows must meet this suite of expectations before they are committed",
    "properties": {
        "suite": {
            "type": "object",
            "required": ["name", "expectations"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "expectations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "additionalProperties": False,
                        "properties": {
                            "type": {
                                "type": "string",
                                "minLength": 1,
                                "description": "a type of Great Expectations, in snake_case",
                            },
                            "kwargs": {"type": "object"},
                            "severity": {
                                "enum": [severity.value for severity in Severity],
                                "description": "a failed expectation of severity warning is only reported",
                            },
                        },
                    },
                },
            },
        },
        "on_failure": {"enum": [policy.value for policy in OnFailure]},
        "max_bad_rows": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "more bad rows than this fail the batch, whatever on_failure says",
        },
        "max_bad_fraction": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "quarantine_uri": {"type": ["string", "null"], "description": "a Delta table, made when missing"},
        "report_uri": {"type": ["string", "null"], "description": "the directory of the reports"},
        "engine": {"enum": [engine.value for engine in QualityEngine]},
        "samples": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_SAMPLES,
            "description": "unexpected values shown per expectation; 0 keeps values out of the reports",
        },
    },
}
"""JSON Schema of `quality`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationSpec:
    """One expectation as its author wrote it."""

    type: str
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    severity: Severity = Severity.CRITICAL

    @property
    def name(self) -> str:
        """The type with the columns it is about, for people: `expect_column_to_exist(tail)`."""
        columns = self.columns
        return f"{self.type}({', '.join(columns)})" if columns else self.type

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the keyword arguments name."""
        named = [self.kwargs.get(key) for key in ("column", "column_A", "column_B")]
        listed = self.kwargs.get("column_list")
        if isinstance(listed, (list, tuple)):
            named += listed
        return tuple(name for name in named if isinstance(name, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityParams:
    """What a load's rows must meet, and what happens when they do not.

    Attributes:
        max_bad_rows, max_bad_fraction: above either, the batch fails whatever `on_failure` says.
        quarantine_uri, report_uri: None for the places below the table's `_deltaward/`.
        samples: unexpected values that a report shows per expectation.
    """

    suite: str
    expectations: tuple[ExpectationSpec, ...]
    on_failure: OnFailure = OnFailure.FAIL
    max_bad_rows: int | None = None
    max_bad_fraction: float | None = None
    quarantine_uri: str | None = None
    report_uri: str | None = None
    engine: QualityEngine = QualityEngine.AUTO
    samples: int = DEFAULT_SAMPLES

    @property
    def keeps_rejected(self) -> bool:
        """Whether rows that break the contract go to quarantine instead of failing the load."""
        return self.on_failure is OnFailure.QUARANTINE


def parse_quality(value: Mapping[str, Any] | None) -> QualityParams | None:
    """Typed parameters from an object that fits `QUALITY_SCHEMA`; None for none.

    Raises:
        InvalidJobSpecError: a number is above what it can be.
    """
    if value is None:
        return None
    for key in ("max_bad_fraction", "samples"):
        most = QUALITY_SCHEMA["properties"][key]["maximum"]
        if (value.get(key) or 0) > most:
            raise InvalidJobSpecError(
                f"quality.{key} is {value[key]}", fix=f"give at most {most}, or leave it out"
            )
    suite = value["suite"]
    return QualityParams(
        suite=suite["name"],
        expectations=tuple(
            ExpectationSpec(
                type=item["type"],
                kwargs=dict(item.get("kwargs") or {}),
                severity=Severity(item.get("severity", Severity.CRITICAL)),
            )
            for item in suite["expectations"]
        ),
        on_failure=OnFailure(value.get("on_failure", OnFailure.FAIL)),
        max_bad_rows=value.get("max_bad_rows"),
        max_bad_fraction=value.get("max_bad_fraction"),
        quarantine_uri=value.get("quarantine_uri"),
        report_uri=value.get("report_uri"),
        engine=QualityEngine(value.get("engine", QualityEngine.AUTO)),
        samples=value.get("samples", DEFAULT_SAMPLES),
    )
