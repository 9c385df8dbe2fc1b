"""The fleet: observe thousands of tables, rank what is due under a budget, and maintain them.

The state of a fleet is in the logs of its tables and in the ledger, which is three tables.
"""
