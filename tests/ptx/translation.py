"""Translates the statements of a kernel to instructions of the machine; unknown statements are refused by name.

Registers, constants and special registers become slots of one register file. Addresses of variables are numbers:
offsets in shared and local memory and in the parameters, addresses of the host in global memory.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tests.ptx.control_flow import EXIT, control_flow, is_branch, target_of
from tests.ptx.parser import BYTES, Kernel, PtxError, Statement, Variable, literal

INSTRUCTION = np.dtype(
    [
        ("operation", "u2"),
        ("space", "u1"),
        ("bytes", "u1"),
        ("count", "u1"),
        ("is_signed", "u1"),
        ("non_coherent", "u1"),
        ("guard_negated", "u1"),
        ("guard", "i4"),
        ("target", "i4"),
        ("reconvergence", "i4"),
        ("results", "i4", 4),
        ("operands", "i4", 5),
        ("offset", "i8"),
    ]
)
"""Instruction in machine/warp.h."""

MEETING = np.dtype([("next", "i4"), ("leaving", "u4")])
"""Meeting in machine/warp.h, of each statement; `leaving`: 1 if the side that jumps leaves loops, 2 for the other."""

SPACES = {"generic": 0, "global": 1, "const": 1, "shared": 2, "local": 3, "param": 4}
WINDOWS = {"global": 0, "const": 0, "shared": 0xA000 << 48, "local": 0xB000 << 48, "param": 0xC000 << 48}
"""Offset that cvta adds to an address in a space to make it generic (machine/memory.h)."""

SPECIALS = (
    "%tid.x",
    "%ntid.x",
    "%ctaid.x",
    "%nctaid.x",
    "%laneid",
    "%warpid",
    "%lanemask_lt",
    "%lanemask_le",
    "%lanemask_eq",
    "%lanemask_ge",
    "%lanemask_gt",
)
"""Special in machine/machine.cpp."""

POISON = 0xA5A5A5A5A5A5A5A5
"""Initial value of registers."""

GAP = 64
"""Bytes between variables in shared and local memory, so that each access outside a variable is detected."""

_ADDRESS = re.compile(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\d+))?\s*\]$")
_MEMORY_TYPE = re.compile(r"[busf](8|16|32|64)$")


@dataclass(frozen=True, slots=True)
class Layout:
    """Variables of one space, with gaps between them: name -> (begin, end)."""

    ranges: dict[str, tuple[int, int]]
    nbytes: int


def lay_out(variables: list[Variable], gap: int = GAP) -> Layout:
    """Assign an address to each variable."""
    ranges: dict[str, tuple[int, int]] = {}
    at = 0
    for variable in variables:
        begin = -(-at // variable.align) * variable.align
        ranges[variable.name] = (begin, begin + variable.nbytes)
        at = begin + variable.nbytes + gap
    return Layout(ranges, max(at - gap, 0) if ranges else 0)


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel that the machine can run."""

    name: str
    texts: tuple[str, ...]
    instructions: NDArray[np.void]
    meetings: NDArray[np.void]
    first_values: NDArray[np.uint64]
    special_slots: NDArray[np.int32]
    shared: Layout
    local: Layout
    parameters: Layout


def translate(kernel: Kernel, operation: Callable[[str], int], addresses: Mapping[str, int]) -> Program:
    """`operation` gives the number of an operation, or -1; `addresses` are those of the module's variables.

    Raises PtxError, which names the unknown statement.
    """
    translator = _Translator(kernel, operation, addresses)
    instructions = np.zeros(len(kernel.statements), dtype=INSTRUCTION)
    instructions["guard"] = instructions["target"] = instructions["reconvergence"] = EXIT
    instructions["results"] = instructions["operands"] = -1
    for position, statement in enumerate(kernel.statements):
        try:
            translator.fill(instructions[position], position, statement)
        except PtxError as error:
            raise PtxError(f"{kernel.name}: {statement.text!r}: {error}") from None
    meetings = np.zeros(len(kernel.statements), dtype=MEETING)
    meetings["next"] = EXIT
    for position, following in translator.flow.next_meeting.items():
        meetings["next"][position] = following
    for position, is_taken in translator.flow.leaving:
        meetings["leaving"][position] |= 1 if is_taken else 2
    return Program(
        name=kernel.name,
        texts=tuple(statement.text for statement in kernel.statements),
        instructions=instructions,
        meetings=meetings,
        first_values=np.array(translator.first_values, dtype=np.uint64),
        special_slots=np.array([translator.slots.get(name, -1) for name in SPECIALS], dtype=np.int32),
        shared=translator.layouts["shared"],
        local=translator.layouts["local"],
        parameters=translator.layouts["param"],
    )


class _Translator:
    def __init__(self, kernel: Kernel, operation: Callable[[str], int], addresses: Mapping[str, int]) -> None:
        self._kernel = kernel
        self._operation = operation
        self.flow = control_flow(kernel)
        self.slots: dict[str, int] = {}
        self.first_values: list[int] = []
        self.layouts = {
            space: lay_out([variable for variable in kernel.variables if variable.space == space])
            for space in ("shared", "local")
        }
        self.layouts["param"] = lay_out(kernel.parameters, gap=0)
        places = {name: begin for layout in self.layouts.values() for name, (begin, _) in layout.ranges.items()}
        # The names of the kernel hide those of the module.
        self._addresses: Mapping[str, int] = ChainMap(places, cast("dict[str, int]", addresses))

    def fill(self, record: np.void, position: int, statement: Statement) -> None:
        if statement.guard is not None:
            record["guard"] = self._slot(statement.guard)
            record["guard_negated"] = statement.guard_negated
        family, *modifiers = statement.opcode.split(".")
        if is_branch(statement):
            self._name(record, "bra")
            record["target"] = target_of(self._kernel, statement)
            record["reconvergence"] = self.flow.meeting.get(position, EXIT)
        elif family in ("ld", "st"):
            self._fill_load_or_store(record, family, modifiers, statement.operands)
        elif family in ("atom", "red"):
            self._fill_atomic(record, family, modifiers, statement.operands)
        elif family == "cvta":
            self._fill_address_conversion(record, modifiers, statement.operands)
        elif family == "mov" and any(operand.startswith("{") for operand in statement.operands):
            self._fill_parts(record, modifiers[-1], statement.operands)
        elif statement.opcode in ("ret", "exit"):
            self._name(record, "ret")
        elif statement.opcode in ("bar.sync", "barrier.sync"):
            if statement.operands != ("0",):
                raise PtxError("only barrier 0, of all threads, is known")
            self._name(record, "bar.sync")
        elif family in ("membar", "fence"):
            # Instructions of the machine run one after the other, so every access is visible at once.
            self._name(record, "fence")
        elif statement.opcode == "bar.warp.sync":
            self._name(record, statement.opcode)
            self._set(record, (), statement.operands)
        else:
            self._name(record, statement.opcode)
            results, operands = statement.operands[:1], statement.operands[1:]
            if "|" in results[0]:
                if family != "shfl":
                    raise PtxError("two results are known for shfl only")
                results = tuple(name.strip() for name in results[0].split("|"))
            self._set(record, results, operands)

    def _fill_load_or_store(
        self, record: np.void, family: str, modifiers: list[str], operands: tuple[str, ...]
    ) -> None:
        self._name(record, family)
        for modifier in modifiers[:-1]:
            if modifier in SPACES:
                record["space"] = SPACES[modifier]
            elif modifier in ("v2", "v4"):
                record["count"] = int(modifier[1])
            elif modifier == "nc" and family == "ld":
                record["non_coherent"] = 1
            elif modifier != "weak":
                raise PtxError(f"unknown modifier .{modifier}")
        record["count"] = max(1, record["count"])
        self._set_type(record, modifiers[-1])
        address, value = (operands[1], operands[0]) if family == "ld" else operands
        values = _names(value)
        if len(values) != record["count"]:
            raise PtxError(f"{len(values)} registers for {record['count']} elements")
        self._set_address(record, address)
        if family == "ld":
            record["results"][: len(values)] = [-1 if name == "_" else self._slot(name) for name in values]
        else:
            record["operands"][1 : 1 + len(values)] = [self._slot(name) for name in values]

    def _fill_atomic(self, record: np.void, family: str, modifiers: list[str], operands: tuple[str, ...]) -> None:
        *options, operator, kind = modifiers
        for option in options:
            if option in SPACES:
                record["space"] = SPACES[option]
            elif option not in ("relaxed", "gpu", "cta"):
                raise PtxError(f"unknown modifier .{option}")
        self._name(record, f"atom.{operator}.{kind}")
        self._set_type(record, kind)
        record["count"] = 1
        if family == "atom":
            record["results"][0] = self._slot(operands[0])
            operands = operands[1:]
        self._set_address(record, operands[0])
        record["operands"][1 : len(operands)] = [self._slot(name) for name in operands[1:]]

    def _fill_parts(self, record: np.void, kind: str, operands: tuple[str, ...]) -> None:
        """A mov that splits or composes a register."""
        self._set_type(record, kind)
        result, operand = operands
        if result.startswith("{"):
            parts = _names(result)
            self._name(record, "unpack")
            self._set(record, parts, (operand,))
        else:
            parts = _names(operand)
            self._name(record, "pack")
            self._set(record, (result,), parts)
        record["count"] = len(parts)

    def _fill_address_conversion(self, record: np.void, modifiers: list[str], operands: tuple[str, ...]) -> None:
        """cvta.to.SPACE subtracts the window of the space, cvta.SPACE adds it."""
        space = modifiers[-2]
        if space not in WINDOWS or modifiers[-1] != "u64":
            raise PtxError("unknown conversion of an address")
        sign = -1 if modifiers[0] == "to" else 1
        self._name(record, "add.u64")
        self._set(record, operands[:1], (operands[1], str(sign * WINDOWS[space])))

    def _name(self, record: np.void, name: str) -> None:
        number = self._operation(name)
        if number < 0:
            raise PtxError(f"unknown instruction {name}")
        record["operation"] = number

    def _set_type(self, record: np.void, kind: str) -> None:
        match = _MEMORY_TYPE.match(kind)
        if match is None:
            raise PtxError(f"unknown type .{kind}")
        record["bytes"] = BYTES[match[1]]
        record["is_signed"] = kind.startswith("s")

    def _set_address(self, record: np.void, operand: str) -> None:
        match = _ADDRESS.match(operand)
        if match is None:
            raise PtxError(f"unknown address {operand}")
        record["operands"][0] = self._slot(match[1])
        record["offset"] = int(match[2] or 0)

    def _set(self, record: np.void, results: tuple[str, ...], operands: tuple[str, ...]) -> None:
        record["results"][: len(results)] = [-1 if name == "_" else self._slot(name) for name in results]
        record["operands"][: len(operands)] = [self._slot(name) for name in operands]

    def _slot(self, name: str) -> int:
        """The slot of a register, a constant or the address of a variable."""
        if name not in self.slots:
            self.first_values.append(self._first_value(name))
            self.slots[name] = len(self.slots)
        return self.slots[name]

    def _first_value(self, name: str) -> int:
        if self._kernel.declares(name):
            return POISON
        if name in SPECIALS:
            return 0
        if name.startswith("%"):
            raise PtxError(f"unknown register {name}")
        if name in self._addresses:
            return self._addresses[name]
        return literal(name) & 0xFFFFFFFFFFFFFFFF


def _names(operand: str) -> tuple[str, ...]:
    """The registers of `%r1` or `{%r1, %r2}`."""
    return tuple(name.strip() for name in operand.strip("{}").split(","))
