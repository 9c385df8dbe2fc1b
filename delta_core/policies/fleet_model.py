"""The settings of a policy file for a fleet: when verbs may run, what they may cost, and where tables are."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from delta_core.policies.cron import parse_cron, time_zone
from delta_core.table_features.table_properties import parse_bytes


def _bytes(value: Any) -> Any:
    return parse_bytes(value) if isinstance(value, str) else value


def as_tuple(value: Any) -> Any:
    """A list as a tuple, as the strict models need."""
    return tuple(value) if isinstance(value, list) else value


def _cron(text: str) -> str:
    parse_cron(text)
    return text


def _zone(name: str) -> str:
    time_zone(name)
    return name


Bytes = Annotated[int, BeforeValidator(_bytes, json_schema_input_type=int | str), Field(gt=0)]
"""A size: a number of bytes, or a string such as `128mb`."""

Cron = Annotated[str, AfterValidator(_cron)]
"""Five fields, or a name such as `@daily`."""

Verb = Annotated[str, Field(pattern="^(optimize|cluster|checkpoint|vacuum)$")]


class Section(BaseModel):
    """A part of a policy file. An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Mode(StrEnum):
    """The treatment of a table: only observed and planned for, planned and shown, or maintained."""

    SHADOW = "shadow"
    PLAN = "plan"
    APPLY = "apply"


class WindowPolicy(Section):
    """A time span that begins at each time of a cron expression, in the policy's time zone."""

    cron: Cron
    hours: Annotated[float, Field(gt=0, le=168)]


class BudgetPolicy(Section):
    """Limits of what verbs may cost. A limit that is missing does not apply.

    `bytes`, `cpu_seconds` and `money` limit one run. The limits with `_per_day` count the runs of the last 24
    hours, too.
    """

    bytes: Bytes | None = None
    cpu_seconds: Annotated[float, Field(gt=0)] | None = None
    money: Annotated[float, Field(gt=0)] | None = None
    bytes_per_day: Bytes | None = None
    cpu_seconds_per_day: Annotated[float, Field(gt=0)] | None = None
    money_per_day: Annotated[float, Field(gt=0)] | None = None


class ApprovalPolicy(Section):
    """The verbs that a person must approve when they rewrite or delete at least `min_bytes`."""

    verbs: Annotated[tuple[Verb, ...], BeforeValidator(as_tuple)] = ()
    min_bytes: Annotated[int, BeforeValidator(_bytes, json_schema_input_type=int | str), Field(ge=0)] = 0


class PrefixPolicy(Section):
    """A prefix below which tables are discovered. `exclude` has shell patterns of paths below the prefix."""

    uri: Annotated[str, Field(min_length=1)]
    depth: Annotated[int, Field(ge=0, le=32)] = 4
    exclude: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = ()


class FleetSection(Section):
    """The settings of the whole fleet.

    `control_root` is the location of the ledger and of the plans. `assets` has asset URIs such as
    `delta://s3/lake/orders`. `price_per_cpu_hour` converts CPU time to money, in the currency of the budgets.
    """

    control_root: Annotated[str, Field(min_length=1)] | None = None
    prefixes: Annotated[tuple[PrefixPolicy, ...], BeforeValidator(as_tuple)] = ()
    assets: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(as_tuple)] = ()
    budget: BudgetPolicy = BudgetPolicy()
    price_per_cpu_hour: Annotated[float, Field(ge=0)] = 0.0
    keep_days: Annotated[int, Field(ge=2)] = 90


class FleetSettings(Section):
    """The settings of a table that only a fleet uses.

    `windows`: when verbs may run; empty is always. `blackout` takes precedence. `quiet: auto` keeps verbs out
    of the hours of the week in which the table has most commits. `jitter_minutes` delays the begin of
    windows by a time that is different for each table. `max_age_hours`: a verb that waited this long goes
    first. `cooldown_hours`: the least time between two verbs of the same kind. `max_failures`: so many
    failures in a row open the table's circuit. `engine: spark` rewrites files on Spark. `visible_with` names
    the DAG whose readers may see the table in a page over the ledger.
    """

    owner: str | None = None
    connection: Annotated[str, Field(min_length=1)] | None = None
    schedule: Cron | None = None
    windows: Annotated[tuple[WindowPolicy, ...], BeforeValidator(as_tuple)] = ()
    blackout: Annotated[tuple[WindowPolicy, ...], BeforeValidator(as_tuple)] = ()
    time_zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    quiet: Annotated[str, Field(pattern="^(off|auto)$")] = "off"
    jitter_minutes: Annotated[int, Field(ge=0, le=1440)] = 0
    priority: Annotated[float, Field(gt=0, le=1000)] = 1.0
    reads_per_day: Annotated[float, Field(gt=0)] = 1.0
    max_age_hours: Annotated[float, Field(gt=0)] = 168.0
    cooldown_hours: Annotated[float, Field(ge=0)] = 0.0
    max_failures: Annotated[int, Field(ge=1)] = 3
    approval: ApprovalPolicy = ApprovalPolicy()
    engine: Annotated[str, Field(pattern="^(auto|inline|spark)$")] = "auto"
    pool: Annotated[str, Field(min_length=1)] | None = None
    visible_with: Annotated[str, Field(min_length=1)] | None = None
    mode: Annotated[Mode, Field(strict=False)] = Mode.APPLY


def policy_schema(model: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema of a policy file's model."""
    return model.model_json_schema()
