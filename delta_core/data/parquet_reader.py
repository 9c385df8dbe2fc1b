"""Reading of data files for operations that rewrite them.

The reader itself is part of `scan`, the lower layer.
"""

from delta_core.scan.record_batches import FileReader, read_file

__all__ = ["FileReader", "read_file"]
