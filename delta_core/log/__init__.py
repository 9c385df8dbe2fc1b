"""The files of `_delta_log`: names, listing, segments, and their readers."""
