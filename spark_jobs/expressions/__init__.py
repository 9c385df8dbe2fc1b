"""Native expressions of Spark: predicates, conversions and checks with one meaning in every session."""
