"""The execution of parsed statements in a Spark session."""
