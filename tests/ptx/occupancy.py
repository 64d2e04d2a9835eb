"""How many warps of a kernel run on a multiprocessor at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from tests.ptx.nvrtc import Resources


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What the blocks that run at the same time share (CUDA C++ programming guide, "Compute Capabilities")."""

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65_536

    def blocks_of(self, used: Resources, threads: int) -> int:
        """Blocks of a kernel that run at the same time. Registers are given to warps by 256, shared memory by 128
        bytes, of which each block takes 1 KiB more for the system."""
        warps = -(-threads // 32)
        registers = -(-used.registers * 32 // 256) * 256
        by_registers = self.registers // registers // 4 * 4 // warps
        by_shared = self.shared_bytes // (-(-used.shared // 128) * 128 + 1024)
        return min(self.warps // warps, self.blocks, by_registers, by_shared)

    def occupancy(self, used: Resources, threads: int) -> float:
        """Share of the warps that fit which run."""
        return self.blocks_of(used, threads) * -(-threads // 32) / self.warps


MULTIPROCESSORS = {
    "80": Multiprocessor(warps=64, blocks=32, shared_bytes=164 << 10),
    "90": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10),
    "100": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10),
}
"""By architecture."""
