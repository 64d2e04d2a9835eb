"""Tools of the tiny chain: a simulation of random bytes, with an option of its own."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from hltnode.processing.offline.chain_tools import ChainTools, SampleRequest
from hltnode.processing.offline.sample_cache import NamedSample
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

SOURCES: tuple[int, ...] = ()
"""The sources of the chain, set by the test that has built it."""
HIT, NO_HIT = b"\xff", b"\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyOptions:
    """The options of the chain's own."""

    most_hits: Annotated[int, typer.Option("--most-hits", min=0, help="Most hits of an event.")] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClashingField:
    """A field with the name of a parameter of the command."""

    seed: Annotated[int, typer.Option("--seed-of-hits", help="Seed of the hits.")] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClashingOption:
    """An option of the command under another name."""

    boards: Annotated[int, typer.Option("--jobs", help="Boards.")] = 1


def import_a_missing_library(_self: object) -> None:
    importlib.import_module("no_such_library")


def numbers_of_hits(seed: int, n: int, most: int) -> list[tuple[int, int]]:
    """Number of hits, and of bytes below the threshold, of each event."""
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(0, most + 1)), int(rng.integers(0, 4))) for _ in range(n)]


@dataclass(frozen=True, slots=True)
class TinySample:
    """Events whose first source has all hits."""

    request: SampleRequest
    own: TinyOptions

    @property
    def name(self) -> str:
        return "tiny"

    @property
    def identity(self) -> dict[str, Any]:
        return {"seed": self.request.seed, **self.description}

    @property
    def description(self) -> dict[str, Any]:
        return {"most_hits": self.own.most_hits}

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        for banks in self.events(n):
            yield 1, encode_record(encode_banks(banks), run=self.request.run, checksum=False)

    def events(self, n: int) -> Iterator[list[RawBank]]:
        for hits, others in numbers_of_hits(self.request.seed, n, self.own.most_hits):
            payloads = (HIT * hits + NO_HIT * others, b"")
            yield [
                RawBank(LhcbBankType.TEST_DET, 1, source, memoryview(payload))
                for source, payload in zip(SOURCES, payloads, strict=True)
            ]


class TinySimulation:
    """Random numbers of hits."""

    options: type[Any] = TinyOptions
    named_samples: Mapping[str, NamedSample] = {"few": NamedSample(events=3, options={"most_hits": 2}, description="")}

    def sample(self, request: SampleRequest, options: TinyOptions) -> TinySample:
        return TinySample(request, options)


TOOLS = ChainTools(simulation=TinySimulation)
