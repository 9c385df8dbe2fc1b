"""Object stores and file systems as bytes and names, without knowledge of Delta.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.storage.listed_files import ListedFiles as ListedFiles
    from delta_core.storage.local import LocalLogStore as LocalLogStore
    from delta_core.storage.log_store import LogStore as LogStore
    from delta_core.storage.log_store import ObjectInfo as ObjectInfo
    from delta_core.storage.log_store import in_place_of as in_place_of
    from delta_core.storage.open import local_root as local_root
    from delta_core.storage.open import open_store as open_store
    from delta_core.storage.open import options_for as options_for
    from delta_core.storage.remote_uri import REMOTE_SCHEMES as REMOTE_SCHEMES
    from delta_core.storage.unchanged import Deleted as Deleted
    from delta_core.storage.unchanged import SeenObject as SeenObject
    from delta_core.storage.uri import canonical_table_uri as canonical_table_uri
    from delta_core.storage.uri import encode_data_path as encode_data_path
    from delta_core.storage.uri import local_path_of_uri as local_path_of_uri
    from delta_core.storage.uri import resolve_data_path as resolve_data_path
    from delta_core.storage.uri import uri_scheme as uri_scheme
    from delta_core.storage.uri import uri_string as uri_string
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "Deleted": "delta_core.storage.unchanged",
            "ListedFiles": "delta_core.storage.listed_files",
            "LocalLogStore": "delta_core.storage.local",
            "LogStore": "delta_core.storage.log_store",
            "ObjectInfo": "delta_core.storage.log_store",
            "REMOTE_SCHEMES": "delta_core.storage.remote_uri",
            "SeenObject": "delta_core.storage.unchanged",
            "canonical_table_uri": "delta_core.storage.uri",
            "encode_data_path": "delta_core.storage.uri",
            "in_place_of": "delta_core.storage.log_store",
            "local_path_of_uri": "delta_core.storage.uri",
            "local_root": "delta_core.storage.open",
            "open_store": "delta_core.storage.open",
            "options_for": "delta_core.storage.open",
            "resolve_data_path": "delta_core.storage.uri",
            "uri_scheme": "delta_core.storage.uri",
            "uri_string": "delta_core.storage.uri",
        },
    )
