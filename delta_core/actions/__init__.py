"""The log's actions, one per file, with their JSON and Arrow forms."""

from delta_core.actions.add_cdc_file import AddCdcFile
from delta_core.actions.add_file import AddFile
from delta_core.actions.commit_info import CommitInfo
from delta_core.actions.deletion_vector import DeletionVectorDescriptor
from delta_core.actions.domain_metadata import DomainMetadata
from delta_core.actions.metadata import Metadata
from delta_core.actions.protocol import Protocol
from delta_core.actions.remove_file import RemoveFile
from delta_core.actions.set_transaction import SetTransaction

Action = (
    AddFile | RemoveFile | Metadata | Protocol | CommitInfo | SetTransaction | DomainMetadata | AddCdcFile
)

__all__ = [
    "Action",
    "AddCdcFile",
    "AddFile",
    "CommitInfo",
    "DeletionVectorDescriptor",
    "DomainMetadata",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "SetTransaction",
]
