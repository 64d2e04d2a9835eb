"""HltSelReports banks: the objects that the lines selected in an event (docs/formats/trigger-banks.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from hltnode.protocol.errors import RejectReason, ReportError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank

SEL_REPORTS_VERSION = 12
READABLE_VERSIONS = (11, 12)
HEADER_WORDS = 10

_NAME = BankType.HLT_SEL_REPORTS.name
MAX_WORDS = MAX_PAYLOAD_SIZE // 4


class ClassId(IntEnum):
    """Kind of an object; other values are legal and pass through."""

    SELECTION = 1
    PARTICLE = 801
    """A composite: several objects of one decay."""
    CALO_CLUSTER = 2003
    TRACK = 10010
    VERTEX = 10030


class SubBank(IntEnum):
    """The parts of a bank."""

    HITS = 0
    OBJECT_TYPES = 1
    STRUCTURE = 2
    EXTRA_INFO = 3
    STANDARD_INFO = 4


@dataclass(frozen=True, slots=True)
class ReportedObject:
    """A selection, or an object of one.

    class_id: `ClassId`; info: numbers (f32) whose meaning depends on the class; ids: channels (u32) of the hits of a
    track; parts: indices of its constituents. At least one of `ids` and `parts` is empty.
    """

    class_id: int
    info: tuple[float, ...] = ()
    ids: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HltSelReports:
    """The objects of an event, grouped by class; `parts` may point to any of them."""

    objects: tuple[ReportedObject, ...]

    @property
    def selections(self) -> dict[int, tuple[int, ...]]:
        """The objects that each line selected, by decision id (line i has id i + 1)."""
        return {
            int(selection.info[0]): selection.parts
            for selection in self.objects
            if selection.class_id == ClassId.SELECTION and selection.info and selection.info[0] >= 0.0
        }


def _malformed(what: str) -> ReportError:
    return ReportError(RejectReason.MALFORMED, f"{_NAME}: {what}")


def decode_sel_reports(bank: RawBank) -> HltSelReports:
    """Decode an HltSelReports bank of version 11 or 12. Raises ReportError."""
    if bank.type != BankType.HLT_SEL_REPORTS:
        raise ReportError(
            RejectReason.MISMATCH, f"{_NAME}: bank type {BankType.HLT_SEL_REPORTS:d} expected, {bank.type} found"
        )
    if bank.version not in READABLE_VERSIONS:
        raise ReportError(
            RejectReason.BAD_VERSION, f"{_NAME}: version {bank.version}, {READABLE_VERSIONS} are supported"
        )
    size = len(bank.payload)
    if size % 4 or size < 4 * HEADER_WORDS:
        raise ReportError(RejectReason.BAD_SIZE, f"{_NAME}: {size} bytes, {4 * HEADER_WORDS} + 4 n expected")
    sub_banks = _sub_banks(bank.payload)
    class_ids = _class_ids(sub_banks)
    structures = _structures(sub_banks, len(class_ids))
    infos = _infos(sub_banks, len(class_ids))
    sequences = _sequences(sub_banks)
    objects = []
    # Objects may share hits; without a limit a small bank could request any amount of memory.
    ids_left = MAX_WORDS
    for class_id, (of_hits, pointers), info in zip(class_ids, structures, infos, strict=True):
        if of_hits and any(pointer >= len(sequences) for pointer in pointers):
            raise _malformed(f"one of {len(sequences)} sequences of hits expected, {max(pointers)} found")
        if not of_hits and any(pointer >= len(class_ids) for pointer in pointers):
            raise _malformed(f"one of {len(class_ids)} objects expected, {max(pointers)} found")
        ids_left -= sum(len(sequences[pointer]) for pointer in pointers) if of_hits else 0
        if ids_left < 0:
            raise _malformed("more ids of channels in objects than a bank can hold")
        ids = tuple(channel for pointer in pointers for channel in sequences[pointer]) if of_hits else ()
        objects.append(ReportedObject(class_id, info, ids, () if of_hits else pointers))
    return HltSelReports(tuple(objects))


def _sub_banks(payload: memoryview) -> dict[int, memoryview]:
    size = len(payload) // 4
    header = struct.unpack_from(f"<{HEADER_WORDS}I", payload)
    if header[0] != size:
        raise ReportError(RejectReason.BAD_SIZE, f"{_NAME}: {header[0]} words announced, {size} found")
    found: dict[int, memoryview] = {}
    begin = HEADER_WORDS
    for i in range(header[1] & 7):
        which, end = header[1] >> 3 * (i + 1) & 7, header[2 + i]
        if which in found or not begin < end <= size:
            raise _malformed(f"sub-bank {which} from word {begin} to {end} of {size}")
        found[which] = payload[4 * begin : 4 * end]
        begin = end
    for needed in (SubBank.OBJECT_TYPES, SubBank.STRUCTURE):
        if needed not in found:
            raise _malformed(f"sub-bank {needed.name} is missing")
    return found


def _count(sub_bank: memoryview, name: str) -> int:
    """The number of entries; checks the size in words, which follows it."""
    count, words = struct.unpack_from("<HH", sub_bank)
    if 4 * words != len(sub_bank):
        raise _malformed(f"{name} of {words} words announced, {len(sub_bank) // 4} found")
    return int(count)


def _class_ids(sub_banks: dict[int, memoryview]) -> list[int]:
    types = sub_banks[SubBank.OBJECT_TYPES]
    count = _count(types, "OBJECT_TYPES")
    if 4 * (1 + count) > len(types):
        raise _malformed(f"{count} object types in {len(types) // 4} words")
    class_ids: list[int] = []
    for end, class_id in struct.iter_unpack("<HH", types[4 : 4 * (1 + count)]):
        if end < len(class_ids):
            raise _malformed(f"objects of class {class_id} end before those of the previous class")
        class_ids += [class_id] * (end - len(class_ids))
    return class_ids


def _structures(sub_banks: dict[int, memoryview], n_objects: int) -> list[tuple[bool, tuple[int, ...]]]:
    """For each object: whether it points to hits, and its pointers."""
    structure = sub_banks[SubBank.STRUCTURE]
    count = _count(structure, "STRUCTURE")
    if count != n_objects:
        raise _malformed(f"{count} structures of {n_objects} objects")
    shorts = struct.unpack(f"<{len(structure) // 2}H", structure)
    found = []
    at = 2
    for _ in range(count):
        if at >= len(shorts) or at + 1 + (shorts[at] >> 1) > len(shorts):
            raise _malformed("the structures of objects extend beyond their sub-bank")
        end = at + 1 + (shorts[at] >> 1)
        found.append((bool(shorts[at] & 1), shorts[at + 1 : end]))
        at = end
    return found


def _infos(sub_banks: dict[int, memoryview], n_objects: int) -> list[tuple[float, ...]]:
    info = sub_banks.get(SubBank.STANDARD_INFO)
    if info is None:
        return [()] * n_objects
    count = _count(info, "STANDARD_INFO")
    values_at = 4 * (1 + (count + 3) // 4)
    if count != n_objects or values_at > len(info):
        raise _malformed(f"numbers of {count} objects in {len(info) // 4} words, {n_objects} objects expected")
    sizes = info[4 : 4 + count]
    if values_at + 4 * sum(sizes) > len(info):
        raise _malformed("the numbers of objects extend beyond their sub-bank")
    values = struct.unpack_from(f"<{sum(sizes)}f", info, values_at)
    found = []
    at = 0
    for size in sizes:
        found.append(values[at : at + size])
        at += size
    return found


def _sequences(sub_banks: dict[int, memoryview]) -> list[tuple[int, ...]]:
    """The channels of each sequence of hits."""
    hits = sub_banks.get(SubBank.HITS)
    if hits is None:
        return []
    (count,) = struct.unpack_from("<H", hits)
    begin = 1 + count // 2
    if 4 * begin > len(hits):
        raise _malformed(f"ends of {count} sequences of hits in {len(hits) // 4} words")
    words = struct.unpack(f"<{len(hits) // 4}I", hits)
    found = []
    for end in struct.unpack_from(f"<{count}H", hits, 2):
        if not begin <= end <= len(words):
            raise _malformed(f"a sequence of hits from word {begin} to {end} of {len(words)}")
        found.append(words[begin:end])
        begin = end
    return found
