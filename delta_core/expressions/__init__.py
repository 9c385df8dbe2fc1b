"""One predicate tree: parsed from Spark SQL text, then evaluated, used for skipping, or rendered."""
