"""What rows go through between a caller and a file, a step each; see `delta_core.data.row_pipeline`."""
