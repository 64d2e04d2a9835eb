"""Efficiencies of lines as one self-contained HTML file. Needs matplotlib and Jinja2."""

from collections.abc import Sequence

from hltnode.processing.offline.pages import lines
from hltnode.processing.offline.plots.figures import Result

_ON_SIGNAL = "all tracks of a candidate have at least 70 % of their hits from particles of the signal"


def efficiency_page(results: Sequence[Result], text: str) -> str:
    """The report of `hltnode efficiency` with one configuration (name and JSON object), or with two overlaid."""
    return lines.efficiency_page(results, text, on_signal=_ON_SIGNAL)
