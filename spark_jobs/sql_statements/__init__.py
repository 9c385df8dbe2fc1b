"""SQL statements for tables of this library: parsing without Spark, and execution in a session."""
