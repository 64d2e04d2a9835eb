"""Lines on sizes and presence of banks (docs/how-to/feed-from-your-daq.md)."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.raw.lines.inputs import banks, event
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import any_of, count_of
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent
from hltnode.protocol.raw_data.bank_types import NO_BANK

MAX_COUNT = 1 << 16
MAX_SIZE = 0xFFFF
MAX_BYTES = 0xFFFF_FFFF
SIZE_BINS = 64

Type = Annotated[int, Field(ge=0, lt=NO_BANK)]
Source = Annotated[int, Field(ge=0, le=0xFFFF)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Size = Annotated[int, Field(ge=0, le=MAX_SIZE)]
Bytes = Annotated[int, Field(ge=0, le=MAX_BYTES)]


class Passthrough(EveryEvent):
    """Every event; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class EventBytes(LineType):
    """Events whose banks together have `min_bytes` to `max_bytes` bytes."""

    input = event

    min_bytes: Bytes = 0
    max_bytes: Bytes = MAX_BYTES

    def selects(self, candidate: Any) -> Any:
        return (candidate.bytes >= self.min_bytes) & (candidate.bytes <= self.max_bytes)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class BankCount(LineType):
    """Events with `min_banks` to `max_banks` banks, of one type or of any."""

    input = event

    bank_type: Type | None = None
    min_banks: Count = 1
    max_banks: Count = MAX_COUNT

    def selects(self, candidate: Any) -> Any:
        of_type = self.bank_type
        n = candidate.n_banks if of_type is None else count_of(banks, lambda bank: bank.type == of_type)
        return (n >= self.min_banks) & (n <= self.max_banks)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class TypeAbsent(LineType):
    """Events without a bank of a type."""

    input = event

    bank_type: Type

    def selects(self, candidate: Any) -> Any:  # noqa: ARG002
        return ~any_of(banks, lambda bank: bank.type == self.bank_type)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class SourceAbsent(LineType):
    """Events without a bank of a source."""

    input = event

    source: Source

    def selects(self, candidate: Any) -> Any:  # noqa: ARG002
        return ~any_of(banks, lambda bank: bank.source == self.source)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class _Sizes(LineType):
    """Banks whose sizes a histogram counts, from 0 to `histogram_end`."""

    input = banks

    min_size: Size = 0
    max_size: Size = MAX_SIZE
    histogram_end: Annotated[int, Field(ge=1, le=MAX_SIZE + 1)] = 4096

    def selects(self, candidate: Any) -> Any:
        return (candidate.size >= self.min_size) & (candidate.size <= self.max_size)

    def line(self) -> Line:
        """The line with the histogram of the sizes of the selected banks."""
        end, text = self.histogram_end, "bytes of a bank"
        sizes = Histogram("size", lambda bank: bank.size, SIZE_BINS, 0, end, description=text)
        return replace(LineType.line(self), histograms=(sizes,))


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class BankSize(_Sizes):
    """Events with a bank of `min_size` to `max_size` bytes, of one type or of any; a histogram of the sizes."""

    bank_type: Type | None = None

    def selects(self, candidate: Any) -> Any:
        selected = _Sizes.selects(self, candidate)
        return selected if self.bank_type is None else selected & (candidate.type == self.bank_type)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class SourceSize(_Sizes):
    """Events in which a source has a bank of `min_size` to `max_size` bytes; a histogram of the sizes."""

    source: Source

    def selects(self, candidate: Any) -> Any:
        return _Sizes.selects(self, candidate) & (candidate.source == self.source)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class ErrorBanks(LineType):
    """Events with at least `min_banks` error banks: banks of error types, or that reach beyond their MFP."""

    input = event

    min_banks: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1

    def selects(self, candidate: Any) -> Any:
        return candidate.n_error_banks >= self.min_banks


@dataclass(frozen=True, config=VALIDATED)
class OddBanks(LineType):
    """Events with a bank of an unknown type, or with a bank that is larger than configured."""

    input = event

    def selects(self, candidate: Any) -> Any:
        return candidate.unknown_type | candidate.large_bank
