"""The contribution of a detector to the framework: a sequence, its kernels and its results per event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hltnode.processing.framework.batch import batch_types
from hltnode.processing.framework.codegen import generated_headers, include_path
from hltnode.processing.framework.collections import U32, Column, DeclarationError, Role, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, launch_types
from hltnode.processing.framework.event_summary import EventSummary
from hltnode.processing.framework.flags import ChainFlag, FlagTable
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.output_lists import OF_EVENT, OutputList
from hltnode.processing.framework.readout import Readout
from hltnode.protocol.raw_data.bank_types import RESERVED_TYPES
from hltnode.protocol.transport.messages import MAX_NAME_LENGTH, is_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The trigger of one detector, from raw banks to decisions.

    name: its name in the installation, messages, documents and logs.
    accepted: u8 per event, 1 for an accepted event. lines: decision words per event. A chain without both only
    reconstructs.
    selected: list with the u32 words of the selected candidates of each accepted event (`words`); None: not available.
    counts: numbers of objects of an event, name -> u32 per event; log and metrics show their sums.
    size: the count that measures the size of an event: `hltnode process` gives these objects per second, too. Empty:
    events of this chain have about the same size.
    summary: counters of luminosity summaries; None: they have the counts.
    lists: output lists, values of the objects of each event. JSON results have the names of lists, of their values and
    of counts side by side.
    more_algorithms: algorithms of the kernel library besides those of the sequence.
    readout: conversion of raw banks to the MFPs that the sequence reads.
    subdetectors: sub-detectors with decoded banks (top five bits of a source id); the others need not go to the device.
    kernel_list: the generated header with the list of kernels; source: the module that declares the sequence.
    types: records, enumerations, sizes and flags that the kernels share with Python.

    Raises DeclarationError if a result is not an output per event of the sequence, the size is no count, a list
    reads what the sequence does not write, two results share a name, messages cannot carry the name, two flags
    share a bit or a name, or the readout names a bank type that a node reserves.
    """

    name: str
    sequence: AlgorithmSequence
    kernels: KernelSources
    source: Path
    readout: Readout
    subdetectors: frozenset[int]
    accepted: Column | None = None
    lines: Column | None = None
    selected: OutputList | None = None
    counts: Mapping[str, Column] = field(default_factory=dict)
    size: str = ""
    summary: EventSummary | None = None
    lists: tuple[OutputList, ...] = ()
    types: tuple[SharedTypes, ...] = ()
    more_algorithms: tuple[Algorithm, ...] = ()

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise DeclarationError(
                f"chain {self.name!r:.80}: its name is up to {MAX_NAME_LENGTH} letters, digits and . _ : / -"
            )
        summary = None if self.summary is None else self.summary.column
        delivered = [column for column in (self.accepted, self.lines, summary) if column is not None]
        for column in (*delivered, *self.counts.values()):
            if column not in self.sequence.columns:
                raise DeclarationError(f"chain {self.name} delivers {column.name}, which its sequence does not write")
            if not column.of_event or not column.role & Role.OUTPUT:
                raise DeclarationError(f"chain {self.name} delivers {column.name}, which is not an output per event")
        if self.size and self.size not in self.counts:
            raise DeclarationError(f"chain {self.name} measures events by {self.size}, which it does not count")
        self._check_lists()
        if self.kernels.header != include_path(self.kernel_list, self.kernels.folders):
            raise DeclarationError(f"chain {self.name}: its kernels are listed in {self.kernel_list}")
        for name, column in self.counts.items():
            if column.dtype != U32 or column.width != 1:
                raise DeclarationError(
                    f"chain {self.name} counts {name} by {column.name}, which is not a u32 per event"
                )
        try:
            FlagTable(self.flags)
        except ValueError as error:
            raise DeclarationError(f"chain {self.name}: {error}") from error
        if reserved := sorted(RESERVED_TYPES & self.readout.bank_types.keys()):
            raise DeclarationError(f"chain {self.name}: a node reserves the bank types {', '.join(map(str, reserved))}")

    def _check_lists(self) -> None:
        for each in (*self.lists, *([self.selected] if self.selected is not None else [])):
            for column in each.columns:
                if column not in self.sequence.columns:
                    raise DeclarationError(
                        f"chain {self.name}: list {each.name} reads {column.name}, which its sequence does not write"
                    )
        names = [*OF_EVENT, *self.counts]
        for each in self.lists:
            names += each.values if self.counts.get(each.name) is each.count else (each.name, *each.values)
        for name in names:
            if names.count(name) > 1:
                raise DeclarationError(f"chain {self.name}: two results of an event have the name {name}")

    @property
    def flags(self) -> tuple[ChainFlag, ...]:
        """The flags that its types declare."""
        return tuple(flag for types in self.types for flag in types.flags)

    @property
    def flag_table(self) -> FlagTable:
        """The flags of the framework and of the chain."""
        return FlagTable(self.flags)

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """Every algorithm of the kernel library, once; those of the sequence first.

        Generated kernels are in no library.
        """
        found: dict[str, Algorithm] = {}
        for algorithm in (*self.sequence, *self.more_algorithms):
            if algorithm.generated is None and algorithm.template is None:
                found.setdefault(algorithm.name, algorithm)
        return tuple(found.values())

    @property
    def headers(self) -> dict[Path, str]:
        """Every generated header by its path."""
        return generated_headers(
            self.algorithms,
            (batch_types, launch_types, *self.types),
            self.kernel_list,
            self.source,
            self.kernels.folders,
        )

    @property
    def kernel_list(self) -> Path:
        """The header that lists the kernels."""
        return self.source.parent / "generated" / f"{self.source.stem}_kernels.h"

    def check_headers(self) -> None:
        """Raises DeclarationError, which names the headers, if headers differ from the declarations."""
        wrong = [
            path
            for path, text in self.headers.items()
            if path != self.kernel_list and (not path.is_file() or path.read_text() != text)
        ]
        if wrong:
            names = ", ".join(path.name for path in wrong)
            raise DeclarationError(
                f"chain {self.name}: generated headers are out of date: {names}; "
                "write them with make headers, or with hltnode.processing.framework.device_headers, and build again"
            )
