"""Writing checkpoints and cleaning up the log behind them."""
