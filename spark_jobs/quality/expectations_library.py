"""Great Expectations, loaded when a suite is to be checked and kept from reporting to anyone."""

from __future__ import annotations

import importlib.util
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from delta_core.errors import QualitySuiteError

_META_KEY = "deltaward_index"
_IN_A_DATABASE = frozenset(
    {
        "unexpected_rows_expectation",
        "expect_query_results_to_match_comparison",
        "expect_table_row_count_to_equal_other_table",
    }
)


def require_library() -> None:
    """Import Great Expectations.

    Raises:
        QualitySuiteError: it is not installed.
    """
    if importlib.util.find_spec("great_expectations") is None:
        raise QualitySuiteError(
            "great_expectations is not installed.",
            cause="The load has a quality suite, and suites are evaluated by that package",
            fix="Install the distribution with its extra where the job runs: deltaward[quality]",
        )
    # Read at import; nothing about a company's data or suites may leave the machine.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with _quiet():
        import great_expectations  # noqa: F401


def expectation_class(type_name: str) -> Any:
    """The library's class of an expectation type.

    Raises:
        QualitySuiteError: there is none, or it needs a database.
    """
    require_library()
    from great_expectations.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.expectation import QueryExpectation
    from great_expectations.expectations.registry import get_expectation_impl

    try:
        found = get_expectation_impl(type_name)
    except ExpectationNotFoundError:
        raise QualitySuiteError(
            f"There is no expectation {type_name!r}.",
            fix="Use a type of Great Expectations, in its snake_case form such as "
            "expect_column_values_to_not_be_null",
        ) from None
    if issubclass(found, QueryExpectation) or type_name in _IN_A_DATABASE:
        raise QualitySuiteError(
            f"The expectation {type_name!r} cannot be checked on staged files.",
            cause="It runs a query in a database",
            fix="Say the same with expectations on columns, or with a contract constraint",
        )
    return found


def make_expectation(expectation: Any, kwargs: Mapping[str, Any]) -> Any:
    """An object of one of the library's classes.

    Raises:
        ValueError: wrong arguments, in the library's words.
    """
    with _quiet():
        try:
            return expectation(**kwargs)
        except Exception as error:  # pydantic's and the library's own
            raise ValueError(" ".join(str(error).split())) from error


def is_row_level(expectation: type) -> bool:
    """Whether the expectation says of each row whether it meets it."""
    from great_expectations.expectations.expectation import (
        ColumnMapExpectation,
        ColumnPairMapExpectation,
        MulticolumnMapExpectation,
    )

    return issubclass(
        expectation, (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
    )


def validate(
    frame: Any, expectations: Mapping[int, Any], *, result_format: Mapping[str, Any]
) -> Iterator[tuple[int, Any]]:
    """Evaluate expectations on a DataFrame of pandas; yield (key, the library's result) for each.

    Args:
        frame: the rows.
        expectations: the library's objects by a key of the caller's.
        result_format: as the library wants it.
    """
    if not expectations:
        return
    require_library()
    import great_expectations as gx

    with _quiet():
        context = gx.get_context(mode="ephemeral")
        # The bars are drawn on the driver's standard error, once per metric.
        context.variables.config.progress_bars = {"globally": False, "metric_calculations": False}
        asset = context.data_sources.add_pandas("staged").add_dataframe_asset("rows")
        batch = asset.add_batch_definition_whole_dataframe("batch").get_batch(
            batch_parameters={"dataframe": frame}
        )
        # Results come in an order of their own; the key travels in the expectation's free metadata.
        tagged = [
            expectation.copy(update={"meta": {_META_KEY: key}, "id": None})
            for key, expectation in expectations.items()
        ]
        outcome = batch.validate(
            gx.ExpectationSuite(name="suite", expectations=tagged), result_format=dict(result_format)
        )
    for result in outcome.results:
        yield result.expectation_config.meta[_META_KEY], result


def exception_text(result: Any) -> str | None:
    """Why an expectation could not be evaluated; None when it could."""
    info = result.exception_info or {}
    entries: Sequence[Any] = [info] if "raised_exception" in info else list(info.values())
    for entry in entries:
        if isinstance(entry, Mapping) and entry.get("raised_exception"):
            return str(entry.get("exception_message") or "the library gave no reason")
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """No deprecation notes of the library and of what it imports; its log only when something is wrong."""
    logger = logging.getLogger("great_expectations")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)
        try:
            yield
        finally:
            logger.setLevel(level)
