"""What the tests that hold for every chain need of one. Each chain of this tree declares it beside its own tests."""

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
    """A small batch that other ways to run the kernels must give the results of the CPU back end on.

    finds: columns of counts that must not be empty, or else the batch shows little. emulated: block sizes, each with
    both orders of the threads. ptx: block sizes, and whether threads take their turns backward.
    """

    reference: Callable[[], Reference]
    finds: tuple[str, ...]
    emulated: tuple[int, ...] = ()
    ptx: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainUnderTest:
    """A chain and the data that its tests need.

    batches: by name; together they run every algorithm. shared_batches: those that run by PTX with columns that share
    memory too. meps: undamaged MEPs in every encoding, for the chain with one of its sequences, by a seed. damage: what
    damaged headers say. fuzzed: the detectors whose banks are damaged. harmless: whether a conflict of accesses, which
    the machine reports, changes no result. shared_memory: least bytes of shared memory of some kernels, by name, which
    the report of the compiler must confirm.
    """

    chain: TriggerChain
    batches: Mapping[str, ComparedBatch]
    shared_batches: tuple[str, ...]
    meps: Callable[[TriggerChain, int], Iterator[EncodedMep]]
    damage: Damage
    fuzzed: tuple[FuzzedDetector, ...]
    harmless: Callable[[Conflict], bool]
    shared_memory: Mapping[str, int] = field(default_factory=dict)
