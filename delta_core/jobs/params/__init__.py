"""The parameters of the jobs on Spark, as values: the same for operators, registry and drivers."""
