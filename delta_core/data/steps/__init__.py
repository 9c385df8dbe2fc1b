"""The steps between a caller's rows and a file; see `delta_core.data.row_pipeline`."""
