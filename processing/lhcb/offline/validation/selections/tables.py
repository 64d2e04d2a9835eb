"""Efficiencies as text."""

from collections.abc import Sequence

from hltnode.processing.offline import line_efficiency_text
from hltnode.processing.offline.line_efficiency_text import Result


def efficiency_text(results: Sequence[Result]) -> str:
    """A table of the lines of one configuration, or of two beside each other, and one of each scan."""
    return line_efficiency_text.efficiency_text(results, "long-reconstructible in 2 < eta < 5")
