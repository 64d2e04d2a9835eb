"""A simulated stream of hits as files: its sub-slices as MDF records, or in time slices with margins as MEPs."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hltnode.processing.framework.readout import Readout
from hltnode.processing.framework.streaming import Streaming
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.worker_processes import encoded_blocks
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mfp_packing import mfps_of_events
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

SUB_SLICES_PER_BLOCK = 256
"""Also the sub-slices of a time slice without its margins, in files of MEPs. Empty ones fill the last slice."""


@dataclass(frozen=True, slots=True)
class StreamSample(ABC):
    """The sub-slices of a request, numbered from 0; one is an event of the file.

    readout, streaming: those of the chain. Subclasses must be picklable, because worker processes make blocks.
    """

    request: SampleRequest
    readout: ClassVar[Readout]
    streaming: ClassVar[Streaming]

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError for a request that cannot be simulated."""

    @abstractmethod
    def sub_slice(self, number: int) -> list[RawBank]:
        """The banks of a sub-slice: hits of each source, empty ones included, and the truth."""

    @abstractmethod
    def empty_sub_slice(self) -> list[RawBank]:
        """The banks of a sub-slice without hits and truth."""

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """Blocks of MDF records, or time slices as MEPs with margins. Raises ValueError as `check` does."""
        self.check()
        if self.request.file_format == "mep":
            yield from encoded_blocks(_SliceOfFile(self, n), n, SUB_SLICES_PER_BLOCK, jobs)
        else:
            yield from encoded_blocks(self.encode_records, n, SUB_SLICES_PER_BLOCK, jobs)

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """Raw banks of the first n sub-slices. Raises ValueError as `check` does."""
        return (self.sub_slice(number) for number in range(n))

    def encode_records(self, first: int, n: int) -> bytes:
        """Sub-slices first ... first + n - 1 as MDF records."""
        made = (self.sub_slice(number) for number in range(first, first + n))
        return b"".join(encode_record(encode_banks(banks), run=self.request.run) for banks in made)

    def encode_slice(self, number: int, core: int, n_stream: int) -> bytes:
        """Time slice `number` of a stream of `n_stream` sub-slices as a MEP: `core` sub-slices between its margins.

        Sub-slices before and behind the stream are empty.
        """
        first = number * core
        events: list[Sequence[RawBank]] = [
            [
                encode_odin(Odin(run=self.request.run, event_id=max(i, 0))),
                *(self.sub_slice(i) if 0 <= i < n_stream else self.empty_sub_slice()),
            ]
            for i in range(first - self.streaming.margin_before, first + core + self.streaming.margin_behind)
        ]
        return encode_mep(list(mfps_of_events(self.readout, EventTable.of_events(events), number).values()))


class _SliceOfFile:
    """Makes the time slice of a file that begins with a sub-slice of a stream of `n_stream` ones."""

    def __init__(self, sample: StreamSample, n_stream: int) -> None:
        self._sample = sample
        self._n_stream = n_stream

    def __call__(self, first: int, _n: int) -> bytes:
        return self._sample.encode_slice(first // SUB_SLICES_PER_BLOCK, SUB_SLICES_PER_BLOCK, self._n_stream)
