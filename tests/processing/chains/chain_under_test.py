"""Input of the tests that run on every chain. Each chain of this tree declares it beside its own tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector
from tests.processing.chains.reference import Reference
from tests.ptx.machine import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedBatch:
    """A small batch on which other ways to run the kernels must give the results of the CPU back end.

    finds: columns of counts that must not be empty; with empty ones the test would prove little. They must count more
    than one object an event, those in `rare` at least one in all. emulated: block sizes, each with both orders of the
    threads. ptx: block sizes, and whether threads run in backward order.
    """

    reference: Callable[[], Reference]
    finds: tuple[str, ...]
    rare: frozenset[str] = frozenset()
    emulated: tuple[int, ...] = ()
    ptx: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainUnderTest:
    """A chain and the data that its tests need.

    batches: by name; together they run every algorithm. shared_batches: batches that also run by PTX with columns that
    share memory. meps: makes undamaged MEPs in every encoding for one sequence of the chain, from a seed. damage:
    values of damaged headers. fuzzed: the detectors whose banks are damaged. harmless: whether a reported conflict of
    accesses changes no result. shared_memory: minimum bytes of shared memory of some kernels, by name, which the
    report of the compiler must confirm.
    """

    chain: TriggerChain
    batches: Mapping[str, ComparedBatch]
    shared_batches: tuple[str, ...]
    meps: Callable[[TriggerChain, int], Iterator[EncodedMep]]
    damage: Damage
    fuzzed: tuple[FuzzedDetector, ...]
    harmless: Callable[[Conflict], bool]
    shared_memory: Mapping[str, int] = field(default_factory=dict)
