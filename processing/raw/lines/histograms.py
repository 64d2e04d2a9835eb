"""Histograms that are filled with any lines.

Sizes of unknown boards span powers of ten, so their bins are quarters of powers of two. A line of the type BankSize or
SourceSize has linear bins for one type or one source.
"""

from typing import Any

from hltnode.processing.raw.lines.inputs import banks, event
from hltnode.processing.selection.expressions.functions import log, maximum
from hltnode.processing.selection.lines.histogram import Histogram

_PER_LOG = 1.4426950408889634
"""1 / ln 2."""


def _log2(size: Any) -> Any:
    """0 for an empty bank and for one of 1 byte."""
    return log(maximum(size, 1) * 1.0) * _PER_LOG


RAW_HISTOGRAMS = (
    Histogram("event_banks", lambda e: e.n_banks, 128, -0.5, 255.5, of=event, description="banks of an event"),
    Histogram("event_bytes_log2", lambda e: _log2(e.bytes), 96, 0, 24, of=event,
              description="power of two of the bytes of an event"),
    Histogram("bank_size_log2", lambda b: _log2(b.size), 64, 0, 16, of=banks, prescale=0.1,
              description="power of two of the bytes of a bank"),
    Histogram("bank_types", lambda b: b.type, 257, -0.5, 256.5, of=banks, prescale=0.1,
              description="banks of each type; 256: reaches beyond its MFP"),
    Histogram("bank_subdetectors", lambda b: b.subdetector, 32, -0.5, 31.5, of=banks, prescale=0.1,
              description="banks of each sub-detector"),
)  # fmt: skip
