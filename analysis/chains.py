"""What the installed chains offer."""

from hltnode.processing.selection.studies.fields import Field, described_fields
from hltnode.processing.selection.trigger_chain import installed_chain


def fields(chain: str = "lhcb") -> list[Field]:
    """The fields that `process` takes, with units and descriptions. Raises ValueError for an unknown chain."""
    return list(described_fields(installed_chain(chain)))
