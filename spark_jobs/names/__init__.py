"""Names of tables: in Spark's session catalog, in a registry file, or a path in a name's form."""

from spark_jobs.names.address import TableAddress
from spark_jobs.names.identifiers import TableName, parse_name
from spark_jobs.names.register import claim, register, unregister
from spark_jobs.names.rename import relocate, rename
from spark_jobs.names.resolve import find, is_registered, registered, resolve

__all__ = [
    "TableAddress",
    "TableName",
    "claim",
    "find",
    "is_registered",
    "parse_name",
    "register",
    "registered",
    "relocate",
    "rename",
    "resolve",
    "unregister",
]
