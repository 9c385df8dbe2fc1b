"""The metadata of this provider for Airflow. Imports nothing, because every Airflow process loads it."""

from __future__ import annotations

from typing import Any

_NAME = "Deltaward"


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata, in the shape of Airflow's provider_info.schema.json."""
    return {
        "package-name": "deltaward",
        "name": _NAME,
        "description": "Loads, maintains and watches Delta Lake tables.",
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://delta.io/",
                "tags": ["service"],
            }
        ],
        "operators": [
            {
                "integration-name": _NAME,
                "python-modules": [
                    f"delta_airflow.operators.{module}"
                    for module in (
                        *("load", "merge", "delete", "update", "sql", "optimize", "vacuum", "checkpoint"),
                        *("restore", "approval"),
                        *("plan", "verify", "fsck", "cleanup", "clone", "convert", "properties", "job"),
                    )
                ],
            }
        ],
        "sensors": [
            {
                "integration-name": _NAME,
                "python-modules": [
                    f"delta_airflow.sensors.{module}"
                    for module in ("table_version", "partition", "freshness")
                ],
            }
        ],
        "hooks": [{"integration-name": _NAME, "python-modules": ["delta_airflow.hooks.deltaward"]}],
        "triggers": [
            {
                "integration-name": _NAME,
                "python-modules": [
                    f"delta_airflow.triggers.{module}"
                    for module in ("table_version", "partition", "freshness")
                ],
            }
        ],
        "task-decorators": [
            {"name": "delta_table", "class-name": "delta_airflow.decorators.delta_table.delta_table_task"},
            {"name": "deltaward", "class-name": "delta_airflow.decorators.deltaward.deltaward_task"},
        ],
        "extra-links": [
            "delta_airflow.links.DeltaJobResultLink",
            "delta_airflow.links.DeltaTableEventsLink",
        ],
        "asset-uris": [
            {
                "schemes": ["delta"],
                "handler": "delta_airflow.assets.sanitize_uri",
                "factory": "delta_airflow.assets.create_asset",
                "to_openlineage_converter": "delta_airflow.assets.convert_asset_to_openlineage",
            }
        ],
        "connection-types": [
            {
                "connection-type": "deltaward",
                "hook-class-name": "delta_airflow.hooks.deltaward.DeltawardHook",
                "hook-name": _NAME,
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "schema", "login", "port"],
                    "relabeling": {"password": "Spark Connect token"},
                    "placeholders": {"password": "only for the runner spark_connect"},
                },
                "conn-fields": _connection_fields(),
            }
        ],
    }


def _connection_fields() -> dict[str, Any]:
    def text(label: str, description: str, **schema: Any) -> dict[str, Any]:
        return {
            "label": label,
            "description": description,
            "schema": {"type": ["string", "null"], **schema},
        }

    return {
        "runner": text(
            "Runner",
            "Where jobs run: in the task's process, by spark-submit, or on a Spark Connect server.",
            enum=["inline", "spark_submit", "spark_connect"],
            default="inline",
        ),
        "master": text("Spark master", "For spark_submit, such as local[2] or spark://host:7077."),
        "connect_url": text(
            "Spark Connect server", "For spark_connect, such as sc://host:15002, without a token."
        ),
        "python": text(
            "Driver's Python",
            "Absolute path of the driver's interpreter; empty: the worker's own interpreter.",
        ),
        "spark_binary": text("spark-submit", "Its name on PATH or absolute path; empty: spark-submit."),
        "work_dir": text(
            "Work directory",
            "Where each run's specification, result and state are: a directory that the workers share, "
            "or a URI of any store, such as s3://bucket/runs; empty: deltaward in Airflow's home.",
        ),
        "allowed_roots": text(
            "Allowed roots",
            "Absolute paths and URIs, separated by commas or as a JSON list. All URIs of a job must be under "
            "one of them; empty: any. Test lists one.",
        ),
        "storage_conn_id": text(
            "Storage connection",
            "An existing connection of the type aws, google_cloud_platform, wasb, adls, azure_data_lake, "
            "webhdfs or hdfs, with the address and credentials of the tables' store. It is read when a task "
            "runs.",
        ),
        "storage_options": {
            "label": "Storage options",
            "description": "JSON object of options for the tables' store. They take precedence over the "
            "storage connection. Credentials here replace all credentials of that connection.",
            # Stored as an object. Airflow does not hide secrets within a string that contains JSON.
            "schema": {"type": ["object", "null"]},
        },
        "deadline_seconds": {
            "label": "Deadline in seconds",
            "description": "A job is stopped after this long; empty: never.",
            "schema": {"type": ["number", "null"], "exclusiveMinimum": 0},
        },
    }
