"""The line types of the chain, and the lines of a trigger configuration without lines."""

from hltnode.processing.raw.lines.line_types import (
    BankCount,
    BankSize,
    ErrorBanks,
    EventBytes,
    OddBanks,
    Passthrough,
    SourceAbsent,
    SourceSize,
    TypeAbsent,
)
from hltnode.processing.selection.configuration.menu import Menu

SAMPLE = 0.01
"""Fraction of events that lines without a selection keep."""

RAW_MENU = Menu(
    types=(
        *(Passthrough, EventBytes, BankCount, BankSize, SourceSize),
        *(TypeAbsent, SourceAbsent, ErrorBanks, OddBanks),
    ),
    lines=(
        Passthrough("RawSample", prescale=SAMPLE),
        ErrorBanks("RawErrorBanks"),
        OddBanks("RawOddBanks", prescale=SAMPLE),
    ),
)
