"""Muon raw banks of version 2 (docs/formats/muon-banks.md).

A bank holds the pads that the read-out board found at the crossings of strips, then the digits (single strips and pads)
in four batches. The trigger reads the digits; the address of a digit identifies a tile in the bank's read-out table,
which is part of the geometry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import MuonVersion
from hltnode.protocol.lhcb.errors import MuonBankError
from hltnode.protocol.raw_data.raw_bank import RawBank, cut_into_banks
from hltnode.protocol.raw_data.source_id import number_of

N_BANKS = 10
N_BATCHES = 4
# Number of addresses of all read-out boards of a bank, and of one board.
ADDRESSES_OF_BANKS = (1536, 1536, 1536, 1536, 3072, 3072, 1920, 1920, 1920, 1920)
BOARD_ADDRESSES = 192
MAX_ADDRESS = (1 << 12) - 1
MAX_TIME = 15

_U16 = np.dtype("<u2")
_MOST = 0xFFFF  # numbers in a bank have 16 bits


@dataclass(frozen=True, slots=True, eq=False)
class MuonDigits:
    """Digits of any number of banks; all arrays u32[n].

    `bank` 0..9, `batch` 0..3, `address` 0..4095 in the bank's read-out table, `time` 0..15 (TDC count).
    """

    bank: NDArray[np.uint32]
    batch: NDArray[np.uint32]
    address: NDArray[np.uint32]
    time: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class MuonPads:
    """Pads that read-out boards found: `bank` 0..9 and `address` (16 bits, not used by the trigger); u32[n]."""

    bank: NDArray[np.uint32]
    address: NDArray[np.uint32]


def batch_of(bank: NDArray[np.uint32], address: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The batch of a digit: each batch holds a quarter of the boards; for ten boards 3, 2, 3 and 2."""
    boards = np.array(ADDRESSES_OF_BANKS, np.uint32)[bank] // np.uint32(BOARD_ADDRESSES)
    batch = address // np.uint32(BOARD_ADDRESSES) * np.uint32(N_BATCHES) // boards
    return np.minimum(batch, np.uint32(N_BATCHES - 1))


def decode_muon(banks: Iterable[RawBank]) -> MuonDigits:
    """The digits of muon banks, in their order; banks of other types are skipped.  Raises MuonBankError."""
    numbers: list[int] = []
    counts: list[int] = []
    parts: list[NDArray[np.uint16]] = []
    for bank in banks:
        if bank.type != LhcbBankType.MUON:
            continue
        number, words = _words_of(bank)
        at = _digits_start(words, bank)
        for _ in range(N_BATCHES):
            n = int(words[at]) if at < len(words) else None
            if n is None or at + 1 + n > len(words):
                raise MuonBankError(RejectReason.TRUNCATED, f"{_where(bank)}: a batch at word {at} of {len(words)}")
            parts.append(words[at + 1 : at + 1 + n])
            counts.append(n)
            at += 1 + n
        if at < len(words) - 1 or words[at:].any():
            raise MuonBankError(RejectReason.BAD_SIZE, f"{_where(bank)}: batches end at word {at} of {len(words)}")
        numbers.append(number)
    words = np.concatenate(parts).astype(np.uint32) if parts else np.empty(0, np.uint32)
    return MuonDigits(
        bank=np.repeat(np.repeat(np.array(numbers, np.uint32), N_BATCHES), counts),
        batch=np.repeat(np.tile(np.arange(N_BATCHES, dtype=np.uint32), len(numbers)), counts),
        address=words & np.uint32(MAX_ADDRESS),
        time=words >> np.uint32(12),
    )


def decode_muon_pads(banks: Iterable[RawBank]) -> MuonPads:
    """The pads of muon banks, in their order; banks of other types are skipped.  Raises MuonBankError."""
    numbers: list[int] = []
    parts: list[NDArray[np.uint16]] = []
    for bank in banks:
        if bank.type == LhcbBankType.MUON:
            number, words = _words_of(bank)
            _digits_start(words, bank)
            parts.append(words[2 : 2 + int(words[0])])
            numbers.append(number)
    counts = [len(part) for part in parts]
    address = np.concatenate(parts).astype(np.uint32) if parts else np.empty(0, np.uint32)
    return MuonPads(np.repeat(np.array(numbers, np.uint32), counts), address)


def encode_muon(
    digits: MuonDigits,
    pads: MuonPads,
    event: NDArray[np.int64] | None = None,
    pad_event: NDArray[np.int64] | None = None,
    n_events: int = 1,
) -> list[RawBank]:
    """One version 2 bank for each of the ten, empty ones included; a batch is ordered by address.

    For several events, `event` and `pad_event` are the event number (0, 1, ...) of each digit and pad; the banks of the
    events follow one another. Raises MuonBankError for values that do not fit.
    """
    for name, values, end in (
        ("bank", digits.bank, N_BANKS),
        ("batch", digits.batch, N_BATCHES),
        ("address", digits.address, MAX_ADDRESS + 1),
        ("time", digits.time, MAX_TIME + 1),
        ("bank", pads.bank, N_BANKS),
        ("pad address", pads.address, 1 << 16),
    ):
        if len(values) and int(values.max()) >= end:
            raise MuonBankError(RejectReason.MALFORMED, f"muon: {name} {values.max()}, 0..{end - 1} expected")
    n_banks = n_events * N_BANKS
    bank = digits.bank.astype(np.int64) + (0 if event is None else N_BANKS * event)
    batch = bank * N_BATCHES + digits.batch
    order = np.lexsort((digits.address, batch))
    batch = batch[order]
    n_digits = np.bincount(batch, minlength=n_banks * N_BATCHES)
    pad_bank = pads.bank.astype(np.int64) + (0 if pad_event is None else N_BANKS * pad_event)
    pad_order = np.argsort(pad_bank, kind="stable")
    pad_bank = pad_bank[pad_order]
    n_pads = np.bincount(pad_bank, minlength=n_banks)
    if max(n_digits.max(), n_pads.max()) > _MOST:
        raise MuonBankError(RejectReason.OVERSIZED, f"muon: more than {_MOST} pads, or digits of a batch, in a bank")

    # A bank: number of pads, 0, pads, padding; four batches of a number and digits; padding. Counted in words.
    batches_at = 2 + n_pads + n_pads % 2
    batch_size = (1 + n_digits).reshape(n_banks, N_BATCHES)
    used = batches_at + batch_size.sum(axis=1)
    ends = np.cumsum(used + used % 2)
    starts = ends - used - used % 2
    batch_at = ((starts + batches_at)[:, None] + np.cumsum(batch_size, axis=1) - batch_size).ravel()
    words = np.zeros(int(ends[-1]), _U16)
    words[starts] = n_pads
    words[starts[pad_bank] + 2 + _counted(n_pads)] = pads.address[pad_order]
    words[batch_at] = n_digits
    words[batch_at[batch] + 1 + _counted(n_digits)] = (digits.time << np.uint32(12) | digits.address)[order]
    return cut_into_banks(words.tobytes(), _U16.itemsize * ends, LhcbBankType.MUON, MuonVersion.BATCHES, range(N_BANKS))


def _counted(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ranges 0, 1, ..., n - 1 for each n of `numbers`, concatenated."""
    return np.arange(int(numbers.sum())) - np.repeat(np.cumsum(numbers) - numbers, numbers)


def _where(bank: RawBank) -> str:
    return f"muon bank of source {bank.source_id}"


def _words_of(bank: RawBank) -> tuple[int, NDArray[np.uint16]]:
    number, size = number_of(bank.source_id), len(bank.payload)
    if bank.version != MuonVersion.BATCHES:
        raise MuonBankError(
            RejectReason.BAD_VERSION,
            f"{_where(bank)}: bank version {bank.version}, {MuonVersion.BATCHES:d} is supported",
        )
    if number >= N_BANKS:
        raise MuonBankError(RejectReason.UNKNOWN_SOURCE, f"{_where(bank)}: number {number}, 0..{N_BANKS - 1} exist")
    if size % _U16.itemsize:
        raise MuonBankError(RejectReason.BAD_SIZE, f"{_where(bank)}: {size} bytes are not whole words")
    return number, np.frombuffer(bank.payload, _U16)


def _digits_start(words: NDArray[np.uint16], bank: RawBank) -> int:
    """The word where the first batch starts: after the pads, at an even word."""
    start = (int(words[0]) + 3) & ~1 if len(words) else 0
    if not 0 < start < len(words):
        raise MuonBankError(RejectReason.TRUNCATED, f"{_where(bank)}: digits expected at word {start} of {len(words)}")
    return start
