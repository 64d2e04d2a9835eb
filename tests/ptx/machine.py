"""The machine that executes translated kernels: memory, launches, their cost, conflicting accesses.

It is C++ (machine/), compiled by the compiler of this machine at first use.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.processing.framework.build_cache import built, version_of
from tests.ptx.parser import Kernel, Module, Variable
from tests.ptx.translation import Layout, Program, translate

SOURCE = Path(__file__).parent / "machine" / "machine.cpp"
SECTOR_BYTES = 32
ALIGNMENT = 256
"""Bytes; the alignment of cudaMalloc."""

COUNTS = np.dtype([("executions", "u8"), ("lanes", "u8"), ("sectors", "u8"), ("bytes", "u8"), ("local_bytes", "u8")])
CONFLICT = np.dtype(
    [
        ("pc", "i4"),
        ("other_pc", "i4"),
        ("kind", "u4"),
        ("other_kind", "u4"),
        ("block", "u4"),
        ("thread", "u4"),
        ("other_thread", "u4"),
        ("space", "u4"),
        ("equal", "u4"),
        ("between_blocks", "u4"),
        ("address", "u8"),
        ("times", "u8"),
    ]
)
KINDS = ("read", "write", "atomic access")
SPACE_NAMES = ("generic", "global", "shared", "local", "parameter")

NO_BLOCK = (1 << 64) - 1
TRACED_BARRIER = np.uint64(0xFFFFFFFFFFFFFFFF)
"""In a trace (LaunchRecord)."""

MAX_INSTRUCTIONS = 1 << 30
"""Limit of instructions of all warps of a block; beyond it the block counts as endless."""


class KernelError(RuntimeError):
    """A kernel did something invalid; the message names kernel, block, warp and instruction."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two unordered accesses to the same bytes, at least one of them a write. `equal`: both wrote the same value."""

    kernel: str
    text: str
    equal: bool


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """Cost of one launch.

    By instruction: executions by a warp, lanes, sectors of 32 bytes of global memory and used bytes of them, bytes of
    local memory. By block: instructions of its warps, barriers, and its path: the sum, over the intervals between
    barriers, of the instructions of the warp that executes most.

    trace: u64, of one block: each executed instruction in order, the number of the warp above 32 bits of lanes;
    TRACED_BARRIER where the block passes a barrier."""

    program: Program
    threads: int
    counts: NDArray[np.void]
    block_instructions: NDArray[np.uint64]
    block_barriers: NDArray[np.uint64]
    block_paths: NDArray[np.uint64]
    conflicts: tuple[Conflict, ...]
    trace: NDArray[np.uint64]


class _Launch(ctypes.Structure):
    """Launch in machine/machine.cpp."""

    _fields_ = [
        ("instructions", ctypes.c_void_p),
        ("n_instructions", ctypes.c_uint64),
        ("meetings", ctypes.c_void_p),
        ("first_values", ctypes.c_void_p),
        ("n_slots", ctypes.c_uint64),
        ("special_slots", ctypes.c_void_p),
        ("shared_variables", ctypes.c_void_p),
        ("n_shared_variables", ctypes.c_uint64),
        ("shared_bytes", ctypes.c_uint64),
        ("local_variables", ctypes.c_void_p),
        ("n_local_variables", ctypes.c_uint64),
        ("local_bytes", ctypes.c_uint64),
        ("parameters", ctypes.c_void_p),
        ("parameter_bytes", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
        ("threads", ctypes.c_uint64),
        ("backward", ctypes.c_uint64),
        ("max_instructions", ctypes.c_uint64),
        ("counts", ctypes.c_void_p),
        ("block_instructions", ctypes.c_void_p),
        ("block_barriers", ctypes.c_void_p),
        ("block_paths", ctypes.c_void_p),
        ("traced_block", ctypes.c_uint64),
    ]


@functools.cache
def _library() -> ctypes.CDLL:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise RuntimeError("no C++ compiler: the machine that executes PTX cannot be built")
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    sources = [path.read_bytes() for path in sorted(SOURCE.parent.iterdir()) if path.is_file()]

    def compile_machine(path: Path) -> None:
        subprocess.run([compiler, *options, str(SOURCE), "-o", str(path)], check=True)

    loaded = ctypes.CDLL(str(built("machine.so", [version_of(compiler), *options, *sources], compile_machine)))
    loaded.ptx_create.restype = ctypes.c_void_p
    loaded.ptx_operation.restype = ctypes.c_int32
    loaded.ptx_fault.restype = ctypes.c_char_p
    loaded.ptx_conflicts.restype = ctypes.c_uint64
    loaded.ptx_conflict.restype = ctypes.c_void_p
    loaded.ptx_trace_size.restype = ctypes.c_uint64
    loaded.ptx_trace.restype = ctypes.c_void_p
    return loaded


def operation(name: str) -> int:
    """The number of an operation of the machine, -1 if there is no operation of this name."""
    return int(_library().ptx_operation(name.encode()))


class _Addresses(dict[str, int]):
    """Addresses of the variables of a module, and whether a translation has read one."""

    read = False

    def __getitem__(self, name: str) -> int:
        self.read = True
        return super().__getitem__(name)


_translated: dict[int, tuple[Kernel, Program]] = {}
"""Programs that hold no address of a machine, by the id of their kernel, which stays alive here."""
MAX_TRANSLATED = 256
"""Programs that are kept, more than all chains have; the oldest ones are dropped first."""


class Programs(Mapping[str, Program]):
    """The kernels of a module, each translated when it is first asked for: most tests launch few of them.

    All machines share the program of a kernel that reads no variable of the module.
    """

    def __init__(self, kernels: Mapping[str, Kernel], addresses: Mapping[str, int]) -> None:
        self._kernels = kernels
        self._addresses = addresses
        self._own: dict[str, Program] = {}

    def __getitem__(self, name: str) -> Program:
        if name in self._own:
            return self._own[name]
        kernel = self._kernels[name]
        if id(kernel) in _translated:
            return _translated[id(kernel)][1]
        addresses = _Addresses(self._addresses)
        program = translate(kernel, operation, addresses)
        if addresses.read:
            self._own[name] = program
        else:
            _translated[id(kernel)] = kernel, program
            if len(_translated) > MAX_TRANSLATED:
                del _translated[next(iter(_translated))]
        return program

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


class Machine:
    """Global memory, and the kernels of one module. `backward` reverses the order of concurrent work."""

    def __init__(self, module: Module, *, backward: bool = False) -> None:
        self._library = _library()
        self._handle = ctypes.c_void_p(self._library.ptx_create())
        self._backward = backward
        self._memory: list[NDArray[np.uint8]] = []
        addresses = {variable.name: self._module_variable(variable) for variable in module.variables}
        self.programs: Mapping[str, Program] = Programs(module.kernels, addresses)

    def __del__(self) -> None:
        self._library.ptx_destroy(self._handle)

    def allocate(self, nbytes: int, fill: int = 0) -> NDArray[np.uint8]:
        """Allocate global memory that is not adjacent to other memory."""
        whole = np.full(nbytes + 3 * ALIGNMENT, fill, dtype=np.uint8)
        begin = 2 * ALIGNMENT - whole.ctypes.data % ALIGNMENT
        self._memory.append(whole)
        part = whole[begin : begin + nbytes]
        self._library.ptx_add_region(self._handle, ctypes.c_uint64(part.ctypes.data), ctypes.c_uint64(nbytes))
        return part

    def touched(self, address: int) -> tuple[int, int]:
        """Bytes that the last launch has read and written, in sectors of 32, of the memory that starts at an address.

        Each sector counts once; a sector that is read after it was written is in a cache, and counts only as written.
        """
        sectors = (ctypes.c_uint64 * 2)()
        self._library.ptx_touched(self._handle, ctypes.c_uint64(address), sectors)
        return SECTOR_BYTES * sectors[0], SECTOR_BYTES * sectors[1]

    def _module_variable(self, variable: Variable) -> int:
        memory = self.allocate(variable.nbytes)
        values = memory.view(f"u{variable.element_bytes}")
        values[: len(variable.values)] = np.array(variable.values, dtype=np.int64).astype(values.dtype)
        return memory.ctypes.data

    def launch(
        self, name: str, arguments: bytes, blocks: int, threads: int, *, traced_block: int = NO_BLOCK
    ) -> LaunchRecord:
        """Run a kernel. `arguments`: its parameters in their memory layout. `traced_block`: its trace is kept.

        Raises KernelError, KeyError if there is no such kernel, ValueError for arguments of another size.
        """
        program = self.programs[name]
        if len(arguments) != program.parameters.nbytes:
            raise ValueError(f"{name} takes {program.parameters.nbytes} bytes of parameters, not {len(arguments)}")
        counts = np.zeros(len(program.instructions), dtype=COUNTS)
        block_instructions, block_barriers, block_paths = (np.zeros(blocks, dtype=np.uint64) for _ in range(3))
        shared, local = (_ranges(layout) for layout in (program.shared, program.local))
        parameters = np.frombuffer(arguments, dtype=np.uint8)
        launch = _Launch(
            instructions=program.instructions.ctypes.data,
            n_instructions=len(program.instructions),
            meetings=program.meetings.ctypes.data,
            first_values=program.first_values.ctypes.data,
            n_slots=len(program.first_values),
            special_slots=program.special_slots.ctypes.data,
            shared_variables=shared.ctypes.data,
            n_shared_variables=len(shared),
            shared_bytes=program.shared.nbytes,
            local_variables=local.ctypes.data,
            n_local_variables=len(local),
            local_bytes=-(-program.local.nbytes // 16) * 16,
            parameters=parameters.ctypes.data,
            parameter_bytes=len(parameters),
            blocks=blocks,
            threads=threads,
            backward=self._backward,
            max_instructions=MAX_INSTRUCTIONS,
            counts=counts.ctypes.data,
            block_instructions=block_instructions.ctypes.data,
            block_barriers=block_barriers.ctypes.data,
            block_paths=block_paths.ctypes.data,
            traced_block=traced_block,
        )
        if self._library.ptx_launch(self._handle, ctypes.byref(launch)) != 0:
            raise KernelError(self._fault(program))
        conflicts = tuple(self._conflicts(program))
        return LaunchRecord(
            program, threads, counts, block_instructions, block_barriers, block_paths, conflicts, self._trace()
        )

    def _trace(self) -> NDArray[np.uint64]:
        n = self._library.ptx_trace_size(self._handle)
        content = ctypes.string_at(self._library.ptx_trace(self._handle), 8 * n) if n else b""
        return np.frombuffer(content, np.uint64)

    def _fault(self, program: Program) -> str:
        message = self._library.ptx_fault(self._handle).decode()
        pc = self._library.ptx_fault_pc(self._handle)
        where = (
            f"block {self._library.ptx_fault_block(self._handle)}, warp {self._library.ptx_fault_warp(self._handle)}"
        )
        at = f" at {program.texts[pc]!r}" if pc >= 0 else ""
        return f"{program.name}, {where}{at}: {message}"

    def _conflicts(self, program: Program) -> list[Conflict]:
        n = self._library.ptx_conflicts(self._handle)
        if n == 0:
            return []
        content = ctypes.string_at(self._library.ptx_conflict(self._handle), n * CONFLICT.itemsize)
        return [_conflict(program, record) for record in np.frombuffer(content, dtype=CONFLICT)]


def _ranges(layout: Layout) -> NDArray[np.uint64]:
    return np.array(list(layout.ranges.values()), dtype=np.uint64).reshape(-1, 2)


def _conflict(program: Program, record: np.void) -> Conflict:
    other = f"thread {record['other_thread']}" if not record["between_blocks"] else "another block"
    equal = " of equal values" if record["equal"] else ""
    text = (
        f"{program.name}, block {record['block']}: {KINDS[record['kind']]} by thread {record['thread']} at "
        f"{program.texts[record['pc']]!r} and {KINDS[record['other_kind']]} by {other} at "
        f"{program.texts[record['other_pc']]!r}{equal}, byte {record['address']} of "
        f"{SPACE_NAMES[record['space']]} memory; {record['times']} times"
    )
    return Conflict(program.name, text, bool(record["equal"]))
