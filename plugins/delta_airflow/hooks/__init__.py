"""The connection `deltaward`: typed settings, run directories and runners."""
