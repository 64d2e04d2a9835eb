"""The numbers of the chain from the bytes of MEPs, with NumPy and independent of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep

NO_BANK, BROKEN = 255, 256
ERRORS = (BROKEN, 240, 241)
FLAGS = {"missing_banks": 1 << 16, "no_event_number": 1 << 17, "unknown_type": 1 << 18, "large_bank": 1 << 19}
FLAGS["no_event_time"] = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The constants of raw_list_banks."""

    min_banks: int = 1
    max_bank_bytes: int = 32768
    first_known_type: int = 192
    last_known_type: int = 239
    number_type: int = NO_BANK
    number_offset: int = 0
    number_bytes: int = 8
    time_type: int = NO_BANK
    time_offset: int = 0
    time_bytes: int = 8
    time_unit_ns: int = 1
    time_divisor: int = 1

    def toml(self) -> str:
        """A trigger configuration with these constants."""
        values = "".join(f"{name} = {getattr(self, name)}\n" for name in self.__slots__)
        return f"[sequence.raw_list_banks]\n{values}"


DEFAULT = Settings()


def fragments_of(mfp: NDArray[np.uint8]) -> list[tuple[int, bytes]]:
    """Type and bytes of each fragment of an MFP; type BROKEN and no bytes for one that reaches beyond it."""
    n = int(mfp[2:4].view("<u2")[0])
    packet = int(mfp[4:8].view("<u4")[0])
    pad = max(1 << int(mfp[18]), 4)
    types = mfp[20 : 20 + n]
    sizes_at = 20 + -(-n // 4) * 4
    sizes = mfp[sizes_at : sizes_at + 2 * n].view("<u2").astype(np.int64)
    first = sizes_at + -(-2 * n // 4) * 4
    ends = first + np.cumsum(-(-sizes // pad) * pad)
    begins = np.concatenate([[first], ends[:-1]])
    found = []
    for kind, begin, size in zip(types.tolist(), begins.tolist(), sizes.tolist(), strict=True):
        whole = begin + size <= packet
        found.append((kind, mfp[begin : begin + size].tobytes()) if whole else (BROKEN, b""))
    return found


def expected_columns(
    meps: Sequence[EncodedMep], settings: Settings = DEFAULT, flags: int = 0
) -> dict[str, NDArray[Any]]:
    """Every column of the chain for a batch of MEPs."""
    counts, banks, numbers, words = [], [], [], []
    times: list[int | None] = []
    per_event: dict[str, list[int]] = {name: [] for name in ("banks", "errors", "bytes", "largest")}
    for mep in meps:
        mfps = {source: mep.data[offset : offset + size] for source, offset, size in mep.fragments}
        contents = {source: fragments_of(mfp) for source, mfp in sorted(mfps.items())}
        for index in range(mep.n_events):
            of_event = [(source, *content[index]) for source, content in contents.items()]
            banks += [
                (source, kind, len(payload), int(mfps[source][19]), source // 2048)
                for source, kind, payload in of_event
            ]
            there = [(kind, payload) for _, kind, payload in of_event if kind != NO_BANK]
            word = flags
            if len(there) < settings.min_banks:
                word |= FLAGS["missing_banks"]
            n_errors = sum(kind in ERRORS for kind, _ in there)
            if n_errors:
                word |= EventFlag.BANK_ERROR
            known = {16, settings.number_type, settings.time_type, *ERRORS}
            known |= set(range(settings.first_known_type, settings.last_known_type + 1))
            if any(kind not in known for kind, _ in there):
                word |= FLAGS["unknown_type"]
            if any(len(payload) > settings.max_bank_bytes for _, payload in there):
                word |= FLAGS["large_bank"]
            number = None
            if settings.number_type != NO_BANK:
                holders = [payload for kind, payload in there if kind == settings.number_type]
                end = settings.number_offset + settings.number_bytes
                if holders and len(holders[0]) >= end:
                    number = int.from_bytes(holders[0][settings.number_offset : end], "little")
                else:
                    word |= FLAGS["no_event_number"]
            if number is None:
                header = mfps[min(mfps)] if mfps else None
                number = 0 if header is None else int(header[8:16].view("<u8")[0]) + index
            time = None
            if settings.time_type != NO_BANK:
                holders = [payload for kind, payload in there if kind == settings.time_type]
                end = settings.time_offset + settings.time_bytes
                if holders and len(holders[0]) >= end:
                    ticks = int.from_bytes(holders[0][settings.time_offset : end], "little")
                    time = ticks * settings.time_unit_ns // settings.time_divisor
                    time = time if time < 1 << 64 else None
                word |= FLAGS["no_event_time"] if time is None else 0
            times.append(time)
            counts.append(len(of_event))
            words.append(word)
            numbers.append((number & 0xFFFF_FFFF, number >> 32))
            per_event["banks"].append(len(there))
            per_event["errors"].append(n_errors)
            per_event["bytes"].append(sum(len(payload) for _, payload in there))
            per_event["largest"].append(max((len(payload) for _, payload in there), default=0))
    record = np.dtype([("source", "<u2"), ("type", "<u2"), ("size", "<u2"), ("version", "u1"), ("subdetector", "u1")])
    return {
        "sources.offset": np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
        "sources.count": np.array(counts, np.uint32),
        "sources.bank": np.array(banks, record),
        "banks.count": np.array(per_event["banks"], np.uint32),
        "error_banks.count": np.array(per_event["errors"], np.uint32),
        "events.bank_bytes": np.array(per_event["bytes"], np.uint32),
        "events.largest_bank": np.array(per_event["largest"], np.uint32),
        "events.number": np.array(numbers, np.uint32).ravel(),
        "event_times.count": np.array([time is not None for time in times], np.uint32),
        "event_times.time_ns": np.array([time or 0 for time in times], np.uint64),
        "events.flags": np.array(words, np.uint32),
    }


def differences(found: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]]) -> list[str]:
    """Names of the columns whose used part differs."""
    return [name for name, values in expected.items() if found[name][: len(values)].tobytes() != values.tobytes()]
