"""Groups of tasks that DAGs are made of."""
