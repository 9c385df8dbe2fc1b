"""The parameter `quality` of a load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from delta_core.errors import InvalidJobSpecError

DEFAULT_SAMPLES: Final = 5
MAX_SAMPLES: Final = 20
"""Great Expectations returns at most this number of unexpected values per expectation."""


class OnFailure(StrEnum):
    """The treatment of a batch that does not meet its suite."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    WARN = "warn"


class Severity(StrEnum):
    """Whether a failed expectation makes the batch fail, or is only reported."""

    CRITICAL = "critical"
    WARNING = "warning"


class QualityEngine(StrEnum):
    """Where the suite is evaluated: in the driver's process, or in Spark's tasks. The results are the same.

    `pandas` is a former name of `driver`.
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
            "description": "more bad rows than this fail the batch, for any value of on_failure",
        },
        "max_bad_fraction": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "quarantine_uri": {
            "type": ["string", "null"],
            "description": "a Delta table, created when it is missing",
        },
        "report_uri": {"type": ["string", "null"], "description": "the directory of the reports"},
        "engine": {"enum": [engine.value for engine in QualityEngine]},
        "samples": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_SAMPLES,
            "description": "number of unexpected values shown per expectation; with 0 the reports "
            "contain no values",
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
        """The display name: the type with its columns, such as `expect_column_to_exist(tail)`."""
        columns = self.columns
        return f"{self.type}({', '.join(columns)})" if columns else self.type

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the keyword arguments name."""
        names = [self.kwargs.get(key) for key in ("column", "column_A", "column_B")]
        column_list = self.kwargs.get("column_list")
        if isinstance(column_list, (list, tuple)):
            names += column_list
        return tuple(name for name in names if isinstance(name, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityParams:
    """The suite for a load's rows, and the policy for rows that do not meet it.

    Attributes:
        max_bad_rows, max_bad_fraction: above either limit, the batch fails for any value of `on_failure`.
        quarantine_uri, report_uri: None for the default locations in the table's `_deltaward/`.
        samples: the number of unexpected values that a report shows per expectation.
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
        """Whether rows that violate the contract go to quarantine instead of failing the load."""
        return self.on_failure is OnFailure.QUARANTINE


def parse_quality(value: Mapping[str, Any] | None) -> QualityParams | None:
    """Parse an object that conforms to `QUALITY_SCHEMA`; None for None.

    Raises:
        InvalidJobSpecError: a number is above its maximum.
    """
    if value is None:
        return None
    for key in ("max_bad_fraction", "samples"):
        maximum = QUALITY_SCHEMA["properties"][key]["maximum"]
        if (value.get(key) or 0) > maximum:
            raise InvalidJobSpecError(
                f"The parameter quality.{key} is {value[key]}, above the maximum of {maximum}.",
                fix=f"Set it to at most {maximum}, or leave it out.",
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
