"""Reading data files, for work that rewrites them.

The reader itself belongs to `scan`, which reads files too and is the lower layer.
"""

from delta_core.scan.record_batches import FileReader, read_file

__all__ = ["FileReader", "read_file"]
