"""Great Expectations: imported only for expectations without a native rule, with its analytics disabled."""

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


def expectation_class(type_name: str) -> Any:
    """Great Expectations' class for an expectation type.

    Raises:
        QualitySuiteError: the type does not exist, or it needs a database; or Great Expectations is not
            installed.
    """
    _import_library(type_name)
    from great_expectations.exceptions.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.expectation import QueryExpectation
    from great_expectations.expectations.registry import get_expectation_impl

    try:
        implementation = get_expectation_impl(type_name)
    except ExpectationNotFoundError:
        raise QualitySuiteError(
            f"The expectation {type_name!r} does not exist.",
            fix="Use a type of Great Expectations in snake_case, such as "
            "expect_column_values_to_not_be_null.",
        ) from None
    if issubclass(implementation, QueryExpectation) or type_name in _IN_A_DATABASE:
        raise QualitySuiteError(
            f"The expectation {type_name!r} cannot be checked on staged files.",
            cause="The expectation runs a query in a database.",
            fix="Use expectations on columns or a contract constraint instead.",
        )
    return implementation


def make_expectation(expectation: Any, kwargs: Mapping[str, Any]) -> Any:
    """Create an object of one of Great Expectations' classes.

    Raises:
        ValueError: the arguments are not valid; the message is the library's.
    """
    with _quiet():
        try:
            return expectation(**kwargs)
        except Exception as error:  # pydantic's and the library's own
            raise ValueError(" ".join(str(error).split())) from error


def options_of(made: Any) -> dict[str, Any]:
    """The arguments of one of Great Expectations' objects, with their defaults."""
    return {name: getattr(made, name) for name in made.__fields__}


def is_row_level(expectation: type) -> bool:
    """Whether the expectation is evaluated per row."""
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
    """Evaluate expectations on a pandas DataFrame; yield (key, its result) for each.

    Args:
        frame: the rows.
        expectations: the library's objects by keys of the caller.
        result_format: the library's option `result_format`.
    """
    if not expectations:
        return
    import great_expectations as gx

    with _quiet():
        context = gx.get_context(mode="ephemeral")
        # The library would draw a bar per metric on the driver's standard error. It annotates a
        # class, but reads a dict.
        settings: Any = context.variables.config
        settings.progress_bars = {"globally": False, "metric_calculations": False}
        asset = context.data_sources.add_pandas("staged").add_dataframe_asset("rows")
        batch = asset.add_batch_definition_whole_dataframe("batch").get_batch(
            batch_parameters={"dataframe": frame}
        )
        # The library reorders the results, so the key is stored in the expectation's metadata.
        tagged = [
            expectation.copy(update={"meta": {_META_KEY: key}, "id": None})
            for key, expectation in expectations.items()
        ]
        outcome = batch.validate(
            gx.ExpectationSuite(name="suite", expectations=tagged), result_format=dict(result_format)
        )
    for result in outcome.results:
        config = result.expectation_config
        assert config is not None
        assert config.meta is not None, "each expectation has a tag"
        yield config.meta[_META_KEY], result


def exception_text(result: Any) -> str | None:
    """The reason why an expectation could not be evaluated; None when it was evaluated."""
    info = result.exception_info or {}
    entries: Sequence[Any] = [info] if "raised_exception" in info else list(info.values())
    for entry in entries:
        if isinstance(entry, Mapping) and entry.get("raised_exception"):
            return str(entry.get("exception_message") or "Great Expectations gave no reason")
    return None


def _import_library(type_name: str) -> None:
    if importlib.util.find_spec("great_expectations") is None:
        raise QualitySuiteError(
            "great_expectations is not installed.",
            cause=f"That package evaluates the expectation {type_name!r}, or interprets its arguments.",
            fix="Install deltaward[quality] where the job runs, or correct the expectation.",
        )
    # The library reads this at import. No information about data or suites may leave the machine.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with _quiet():
        import great_expectations  # noqa: F401


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings of the library and its imports, and its log messages below WARNING."""
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
