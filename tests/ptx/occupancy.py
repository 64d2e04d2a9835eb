"""The number of warps of a kernel that run on a multiprocessor at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from tests.ptx.nvrtc import Resources


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """Resources that concurrent blocks share (CUDA C++ programming guide, "Compute Capabilities")."""

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65_536

    def blocks_of(self, used: Resources, threads: int) -> int:
        """Number of concurrent blocks of a kernel.

        Warps get registers in units of 256. Blocks get shared memory in units of 128 bytes, plus 1 KiB for the system.
        """
        warps = -(-threads // 32)
        registers = -(-used.registers * 32 // 256) * 256
        by_registers = self.registers // registers // 4 * 4 // warps
        by_shared = self.shared_bytes // (-(-used.shared // 128) * 128 + 1024)
        return min(self.warps // warps, self.blocks, by_registers, by_shared)

    def occupancy(self, used: Resources, threads: int) -> float:
        """Running warps divided by the maximum of warps."""
        return self.blocks_of(used, threads) * -(-threads // 32) / self.warps


MULTIPROCESSORS = {
    "80": Multiprocessor(warps=64, blocks=32, shared_bytes=164 << 10),
    "86": Multiprocessor(warps=48, blocks=16, shared_bytes=100 << 10),
    "90": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10),
    "100": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10),
}
"""Multiprocessors by architecture."""
