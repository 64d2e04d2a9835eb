"""What a detector brings to the framework: a sequence, its kernels, and what it delivers for every event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hltnode.processing.framework.batch import batch_types
from hltnode.processing.framework.codegen import generated_headers, include_path
from hltnode.processing.framework.collections import U32, Column, DeclarationError, Role, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, launch_types
from hltnode.processing.framework.flags import ChainFlag, FlagTable
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.readout import Readout
from hltnode.protocol.raw_data.bank_types import RESERVED_TYPES
from hltnode.protocol.transport.messages import MAX_NAME_LENGTH, is_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The trigger of one detector, from raw banks to decisions.

    name: under which it is installed, and by which messages, documents and logs know it.
    accepted: u8 per event, 1 for an event that is kept. lines: the words of decisions per event. A chain without both
    reconstructs only.
    selected: u32 words that say what the lines selected in each accepted event, None: nothing is said.
    counts: what is found in an event, name -> u32 per event; their sums go to log and metrics.
    more_algorithms: those that the library of kernels holds besides the ones of the sequence.
    readout: how raw banks become the MFPs that the sequence reads.
    subdetectors: those whose banks it decodes (top five bits of a source id); the others need not go to the device.
    kernel_list: the generated header with the list of kernels, and `source`, the module that declares the sequence.
    types: records, enumerations, sizes and flags that the kernels share with Python.

    Raises DeclarationError where a result is not an output per event of the sequence, for a name that messages cannot
    carry, where two flags share a bit or a name, and where the readout names a bank type that a node reserves.
    """

    name: str
    sequence: AlgorithmSequence
    kernels: KernelSources
    source: Path
    readout: Readout
    subdetectors: frozenset[int]
    accepted: Column | None = None
    lines: Column | None = None
    selected: Column | None = None
    counts: Mapping[str, Column] = field(default_factory=dict)
    types: tuple[SharedTypes, ...] = ()
    more_algorithms: tuple[Algorithm, ...] = ()

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise DeclarationError(
                f"chain {self.name!r:.80}: its name is up to {MAX_NAME_LENGTH} letters, digits and . _ : / -"
            )
        delivered = [column for column in (self.accepted, self.lines, self.selected) if column is not None]
        for column in (*delivered, *self.counts.values()):
            if column not in self.sequence.columns:
                raise DeclarationError(f"chain {self.name} delivers {column.name}, which its sequence does not write")
            if not column.of_event or not column.role & Role.OUTPUT:
                raise DeclarationError(f"chain {self.name} delivers {column.name}, which is no output per event")
        if self.kernels.header != include_path(self.kernel_list, self.kernels.folders):
            raise DeclarationError(f"chain {self.name}: its kernels are listed in {self.kernel_list}")
        for name, column in self.counts.items():
            if column.dtype != U32 or column.width != 1:
                raise DeclarationError(f"chain {self.name} counts {name} by {column.name}, which is no u32 per event")
        try:
            FlagTable(self.flags)
        except ValueError as error:
            raise DeclarationError(f"chain {self.name}: {error}") from error
        if reserved := sorted(RESERVED_TYPES & self.readout.bank_types.keys()):
            raise DeclarationError(f"chain {self.name}: a node reserves the bank types {', '.join(map(str, reserved))}")

    @property
    def flags(self) -> tuple[ChainFlag, ...]:
        """The flags that its types declare."""
        return tuple(flag for types in self.types for flag in types.flags)

    @property
    def flag_table(self) -> FlagTable:
        """The flags of the framework and its own."""
        return FlagTable(self.flags)

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """Every algorithm of the library of kernels, once; those of the sequence first. Generated ones are in none."""
        found: dict[str, Algorithm] = {}
        for algorithm in (*self.sequence, *self.more_algorithms):
            if algorithm.generated is None:
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
        """Raises DeclarationError, which names them, if headers do not say what the declarations say."""
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
