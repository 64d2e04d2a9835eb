"""Banks of the luminometer PLUME (docs/formats/plume-banks.md): over-threshold bits and ADC values of its channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import PlumeVersion
from hltnode.protocol.lhcb.errors import PlumeBankError
from hltnode.protocol.raw_data.raw_bank import RawBank

PLUME_SOURCE = 0x5001
"""The board with the channels for luminosity. Other boards of PLUME are not read."""
N_CHANNELS = 64
LUMI_CHANNELS = (*range(22), *range(32, 54))
"""Channels of photomultipliers that measure luminosity, 22 of each of the two halves of the board."""
ADC_BITS = 12
MAX_ADC = (1 << ADC_BITS) - 1
MASK_BYTES = N_CHANNELS // 8
BANK_BYTES = MASK_BYTES + N_CHANNELS * ADC_BITS // 8

_NAME = LhcbBankType.PLUME.name


def encode_plume(over_threshold: ArrayLike, adc: ArrayLike) -> RawBank:
    """A bank.

    over_threshold: bool[64]. adc: integers[64], 0 to MAX_ADC. Raises PlumeBankError for other shapes or values.
    """
    over, values = np.asarray(over_threshold, np.bool_), np.asarray(adc, np.int64)
    if over.shape != (N_CHANNELS,) or values.shape != (N_CHANNELS,):
        raise PlumeBankError(
            RejectReason.MALFORMED, f"{_NAME}: {over.shape} bits and {values.shape} values, {N_CHANNELS} expected"
        )
    if values.min() < 0 or values.max() > MAX_ADC:
        raise PlumeBankError(
            RejectReason.OVERSIZED, f"{_NAME}: ADC values {values.min()} to {values.max()}, 0 to {MAX_ADC} expected"
        )
    bits = np.unpackbits(values.astype(">u2").view(np.uint8).reshape(N_CHANNELS, 2), axis=1)[:, -ADC_BITS:]
    payload = np.packbits(np.concatenate([over.astype(np.uint8), bits.ravel()])).tobytes()
    return RawBank(LhcbBankType.PLUME, int(PlumeVersion.CHANNELS), PLUME_SOURCE, memoryview(payload))


def decode_plume(bank: RawBank) -> tuple[NDArray[np.bool_], NDArray[np.uint16]]:
    """Over-threshold bits bool[64] and ADC values u16[64]. Raises PlumeBankError for another type, version or size."""
    if bank.type != LhcbBankType.PLUME:
        raise PlumeBankError(
            RejectReason.MISMATCH, f"{_NAME}: bank type {LhcbBankType.PLUME:d} expected, {bank.type} found"
        )
    if bank.version != PlumeVersion.CHANNELS:
        raise PlumeBankError(
            RejectReason.BAD_VERSION, f"{_NAME}: version {PlumeVersion.CHANNELS:d} expected, {bank.version} found"
        )
    if len(bank.payload) != BANK_BYTES:
        raise PlumeBankError(RejectReason.BAD_SIZE, f"{_NAME}: {BANK_BYTES} bytes expected, {len(bank.payload)} found")
    bits = np.unpackbits(np.frombuffer(bank.payload, np.uint8))
    values = bits[N_CHANNELS:].reshape(N_CHANNELS, ADC_BITS).astype(np.uint16) @ (
        np.uint16(1) << np.arange(ADC_BITS - 1, -1, -1, dtype=np.uint16)
    )
    return bits[:N_CHANNELS].astype(np.bool_), values
