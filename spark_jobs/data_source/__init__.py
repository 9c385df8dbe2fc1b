"""The Python data source `deltaward`."""
