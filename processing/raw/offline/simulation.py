"""Made-up events of any number of boards: sizes from a distribution, random bytes."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample, digest_of_files
from hltnode.processing.offline.worker_processes import encoded_blocks
from hltnode.processing.raw.readout import RawBankType
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import MAX_NUMBER, USER_SUBDETECTORS, source_id

EVENTS_PER_BLOCK = 256
MAX_BOARDS = len(USER_SUBDETECTORS) * (MAX_NUMBER + 1)
NUMBER_TYPE = USER_TYPES[-1]
"""Type of the bank with the number of the event."""
VERSION = 1
_LOGNORMAL_SIGMA = 1.0


class Sizes(StrEnum):
    """Distribution of the sizes of banks; all have the same mean."""

    FIXED = "fixed"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawOptions:
    """The options of `hltnode simulate` that this chain has of its own."""

    boards: Annotated[int, typer.Option("--boards", min=1, max=MAX_BOARDS, help="Boards of the detector.")] = 8
    types: Annotated[
        int,
        typer.Option("--types", min=1, max=len(USER_TYPES) - 1, help="Bank types; the boards take them in turn."),
    ] = 2
    mean_bytes: Annotated[
        int, typer.Option("--mean-bytes", min=0, max=MAX_PAYLOAD_SIZE, help="Mean size of a bank in bytes.")
    ] = 100
    sizes: Annotated[Sizes, typer.Option("--sizes", help="Distribution of the sizes.")] = Sizes.EXPONENTIAL
    empty: Annotated[
        float, typer.Option("--empty", min=0.0, max=1.0, help="Fraction of banks that are left out, board by board.")
    ] = 0.0
    errors: Annotated[
        float, typer.Option("--errors", min=0.0, max=1.0, help="Fraction of banks that are error banks.")
    ] = 0.0
    numbered: Annotated[
        bool,
        typer.Option(
            "--numbered/--not-numbered", help=f"A further board sends the event number in a bank of type {NUMBER_TYPE}."
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class RawSample:
    """The events of a request."""

    request: SampleRequest
    own: RawOptions

    @property
    def name(self) -> str:
        """A short name for files."""
        return "boards"

    @property
    def identity(self) -> dict[str, Any]:
        """The request and the code."""
        return {
            "seed": self.request.seed,
            "run": self.request.run,
            "file_format": self.request.file_format,
            **self.description,
            "code": digest_of_files([Path(__file__)]),
        }

    @property
    def description(self) -> dict[str, Any]:
        """The chain's own options."""
        own = self.own
        return {
            "boards": own.boards,
            "types": own.types,
            "mean_bytes": own.mean_bytes,
            "sizes": own.sizes.value,
            "empty": own.empty,
            "errors": own.errors,
            "numbered": own.numbered,
        }

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """Blocks of MDF records. Raises ValueError for MEP files, which need ODIN."""
        if self.request.file_format == "mep":
            raise ValueError("MEP files begin with ODIN, which this chain does not have: write MDF files")
        if self.request.geometry is not None:
            raise ValueError(f"{self.request.geometry}: chain raw has no geometry")
        yield from encoded_blocks(partial(encode_block, self), n, EVENTS_PER_BLOCK, jobs)

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """Raw banks of the first n events."""
        return (event_banks(self, number) for number in range(n))


class RawSimulation:
    """Random banks of boards of any kind."""

    options = RawOptions
    named_samples: Mapping[str, NamedSample] = {
        "boards": NamedSample(events=5000, options={}, description="eight boards of two types")
    }

    def sample(self, request: SampleRequest, options: RawOptions) -> RawSample:
        """The sample of a request."""
        return RawSample(request, options)


def encode_block(sample: RawSample, first: int, n: int) -> bytes:
    """Events first ... first + n - 1 as MDF records."""
    events = (event_banks(sample, number) for number in range(first, first + n))
    return b"".join(encode_record(encode_banks(banks), run=sample.request.run) for banks in events)


def board_source(board: int) -> int:
    """The source id of a board."""
    return source_id(USER_SUBDETECTORS[board // (MAX_NUMBER + 1)], board % (MAX_NUMBER + 1))


def event_banks(sample: RawSample, number: int) -> list[RawBank]:
    """The banks of an event. Each event has random numbers of its own, so that it is the same in any block."""
    own = sample.own
    rng = np.random.default_rng((sample.request.seed, number))
    sizes = drawn_sizes(rng, own)
    there = rng.random(own.boards) >= own.empty
    is_error = rng.random(own.boards) < own.errors
    payload = memoryview(rng.bytes(int(sizes.sum())))
    banks = []
    if own.numbered:
        banks.append(RawBank(NUMBER_TYPE, VERSION, source_id(0, 0), memoryview(number.to_bytes(8, "little"))))
    at = 0
    for board, size in enumerate(sizes.tolist()):
        if there[board]:
            kind = RawBankType.BOARD_ERROR if is_error[board] else USER_TYPES[board % own.types]
            banks.append(RawBank(kind, VERSION, board_source(board), payload[at : at + size]))
        at += size
    return banks


def drawn_sizes(rng: np.random.Generator, own: RawOptions) -> NDArray[np.int64]:
    """The size of the bank of each board, i64[boards]."""
    mean, n = own.mean_bytes, own.boards
    match own.sizes:
        case Sizes.FIXED:
            sizes = np.full(n, float(mean))
        case Sizes.UNIFORM:
            sizes = rng.uniform(0.0, 2.0 * mean, n)
        case Sizes.EXPONENTIAL:
            sizes = rng.exponential(mean, n)
        case Sizes.LOGNORMAL:
            # exp(sigma^2 / 2) is the mean of a log-normal distribution with median 1.
            sizes = mean * rng.lognormal(-(_LOGNORMAL_SIGMA**2) / 2, _LOGNORMAL_SIGMA, n)
    rounded: NDArray[np.int64] = np.minimum(np.rint(sizes), MAX_PAYLOAD_SIZE).astype(np.int64)
    return rounded
