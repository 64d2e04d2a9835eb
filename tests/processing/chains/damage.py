"""Damaged batches: valid MFPs in which bank versions, types, sizes or contents are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.offline_runner import EncodedMep

MFP_HEADER = 20
VERSION_AT = 19
ALIGN_AT = 18


def fragment_places(mep: EncodedMep, mfp: int, event: int) -> tuple[int, int]:
    """Byte offset and size of the fragment of an event in the MFP that starts at byte `mfp`."""
    n = mep.n_events
    sizes_at = mfp + MFP_HEADER + (n + 3) // 4 * 4
    sizes = mep.data[sizes_at : sizes_at + 2 * n].view("<u2")
    align = 1 << int(mep.data[mfp + ALIGN_AT])
    first = sizes_at + (2 * n + 3) // 4 * 4
    return first + sum(-(-int(size) // align) * align for size in sizes[:event]), int(sizes[event])


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Values of damaged headers: bank versions and bank types, known and unknown ones."""

    versions: tuple[int, ...]
    types: tuple[int, ...]

    def damaged(self, mep: EncodedMep, rng: np.random.Generator) -> EncodedMep:
        """The MEP with some of its MFPs damaged. The MFP sizes stay, because the node checks them."""
        data = mep.data.copy()
        kinds = (self._version, self._type, _bank_size, _a_byte, _payload, _payload, _payload)
        for index in rng.integers(0, len(mep.fragments), int(rng.integers(1, 1 + len(mep.fragments)))):
            _, offset, size = mep.fragments[index]
            kinds[rng.integers(0, len(kinds))](mep, data, offset, size, rng)
        return replace(mep, data=data)

    def damaged_batches(self, mep: EncodedMep, seed: int, count: int) -> Iterator[EncodedMep]:
        """`count` damaged copies of a MEP."""
        rng = np.random.default_rng(seed)
        for _ in range(count):
            yield self.damaged(mep, rng)

    def damage_a_header(
        self, mep: EncodedMep, data: NDArray[np.uint8], offset: int, size: int, rng: np.random.Generator
    ) -> None:
        """Change a version, type or size of a bank, or any byte behind the header of the MFP."""
        (self._version, self._type, _bank_size, _a_byte)[rng.integers(0, 4)](mep, data, offset, size, rng)

    def _version(
        self, _: EncodedMep, data: NDArray[np.uint8], offset: int, _size: int, rng: np.random.Generator
    ) -> None:
        data[offset + VERSION_AT] = rng.choice(self.versions)

    def _type(
        self, mep: EncodedMep, data: NDArray[np.uint8], offset: int, _size: int, rng: np.random.Generator
    ) -> None:
        data[offset + MFP_HEADER + rng.integers(0, mep.n_events)] = rng.choice(self.types)


def _bank_size(mep: EncodedMep, data: NDArray[np.uint8], offset: int, _size: int, rng: np.random.Generator) -> None:
    sizes = offset + MFP_HEADER + (mep.n_events + 3) // 4 * 4
    data[sizes + rng.integers(0, 2 * mep.n_events)] = rng.integers(0, 256)


def _a_byte(_: EncodedMep, data: NDArray[np.uint8], offset: int, size: int, rng: np.random.Generator) -> None:
    data[offset + rng.integers(MFP_HEADER, size)] = rng.integers(0, 256)


def _payload(mep: EncodedMep, data: NDArray[np.uint8], offset: int, _size: int, rng: np.random.Generator) -> None:
    at, size = fragment_places(mep, offset, int(rng.integers(0, mep.n_events)))
    kind = rng.integers(0, 3)
    if kind == 0:
        data[at : at + size] = rng.integers(0, 256, size, dtype=np.uint8)
    elif kind == 1:
        data[at : at + size] = rng.choice([0, 1, 0x55, 0x80, 0xFF])
    else:
        wrong = rng.random(size) < 0.2
        data[at : at + size][wrong] = rng.integers(0, 256, int(wrong.sum()), dtype=np.uint8)
