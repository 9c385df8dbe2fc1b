"""Deltaward's Airflow provider: a connection, runners, operators, a sensor and links for Delta tables.

Nothing here imports pyspark, pandas or great_expectations: the scheduler, the DAG processor, the
triggerer and the API server load these modules.
"""
