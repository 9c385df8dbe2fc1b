"""CONVERT: turn a directory of Parquet files into a Delta table in place. No file is moved or changed."""

from delta_core.maintenance.convert.apply import ConversionPlan, apply_conversion, plan_conversion
from delta_core.maintenance.convert.convert import convert_to_deltalake

__all__ = ["ConversionPlan", "apply_conversion", "convert_to_deltalake", "plan_conversion"]
