"""Truth of the calorimeter: which particles leave energy there, and where (bank of type 35,
docs/formats/truth-banks.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.raw_data.raw_bank import RawBank

ECAL_TRUTH_VERSION = 1
SHOWER = np.dtype([("key", "<i4"), ("pid", "<i4"), ("x", "<f4"), ("y", "<f4"), ("energy", "<f4"), ("visible", "<f4")])
"""A particle at the calorimeter: its number in the event (-1 if no truth bank lists it) and its kind; x, y (mm) on the
plane of the shower maximum; its energy, and that which the cells see without noise (MeV)."""

_N = np.dtype("<u4")


def encode_ecal_truth(showers: NDArray[np.void]) -> RawBank:
    """The bank (type 35) of an event with these SHOWER rows."""
    payload = np.array([len(showers)], _N).tobytes() + showers.astype(SHOWER).tobytes()
    return RawBank(LhcbBankType.MC_ECAL, ECAL_TRUTH_VERSION, 0, memoryview(payload))


def decode_ecal_truth(bank: RawBank) -> NDArray[np.void]:
    """SHOWER rows of an event from its bank of type 35. Raises TruthError, also for values that are not finite."""
    if bank.type != LhcbBankType.MC_ECAL:
        raise TruthError(
            RejectReason.MISMATCH, f"MC calorimeter: bank type {LhcbBankType.MC_ECAL:d} expected, {bank.type} found"
        )
    if bank.version != ECAL_TRUTH_VERSION:
        raise TruthError(
            RejectReason.BAD_VERSION, f"MC calorimeter: version {ECAL_TRUTH_VERSION} expected, {bank.version} found"
        )
    size = len(bank.payload)
    if size < _N.itemsize:
        raise TruthError(RejectReason.TRUNCATED, f"MC calorimeter: {size} bytes")
    n = int(np.frombuffer(bank.payload, _N, 1)[0])
    if size != _N.itemsize + n * SHOWER.itemsize:
        raise TruthError(RejectReason.BAD_SIZE, f"MC calorimeter: {n} particles announced in {size} bytes")
    showers = np.frombuffer(bank.payload, SHOWER, n, _N.itemsize)
    if not all(np.isfinite(showers[name]).all() for name in ("x", "y", "energy", "visible")):
        raise TruthError(RejectReason.MALFORMED, "MC calorimeter: a value is not finite")
    return showers
