"""VELO raw banks: super-pixels (VP) and retina clusters (VPRetinaCluster), each of versions 2, 3 and 4.

docs/formats/velo-banks.md. A sensor has 768 columns (3 chips of 256) and 256 rows. Versions 2 and 3 hold one sensor per
bank, after a count word; version 4 holds a pair of sensors without a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import VELO, VeloVersion
from hltnode.protocol.lhcb.errors import VeloBankError
from hltnode.protocol.raw_data.raw_bank import RawBank, cut_into_banks
from hltnode.protocol.raw_data.source_id import number_of

N_SENSORS = 208
N_COLUMNS = 768
N_ROWS = 256
SUPERPIXEL_COLUMNS = 2
SUPERPIXEL_ROWS = 4

_READABLE_VERSIONS = VELO.read_versions
_WORD = np.dtype("<u4")
_SENSOR_PAIR_MASK = 0x1FF
_SUPERPIXEL_SENSOR_BIT = 23
_RETINA_SENSOR_BIT = 22


@dataclass(frozen=True, slots=True, eq=False)
class SuperPixels:
    """Super-pixels of any number of sensors; all arrays u32[n].

    `sensor` 0..207; `column` 0..383 and `row` 0..63 in units of 2 columns and 4 rows; `pattern` 8 bits, pixel
    (c, r) of the super-pixel is bit 4 c + r; `isolated` is 1 if none of the eight neighbours is lit.
    """

    sensor: NDArray[np.uint32]
    column: NDArray[np.uint32]
    row: NDArray[np.uint32]
    pattern: NDArray[np.uint32]
    isolated: NDArray[np.uint32]

    def pixels(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
        """Sensor, column 0..767 and row 0..255 of every lit pixel, u32[n_pixels] each."""
        lit = self.pattern[:, None] >> np.arange(8, dtype=np.uint32) & np.uint32(1)
        which, bit = np.nonzero(lit)
        column = self.column[which] * SUPERPIXEL_COLUMNS + (bit // SUPERPIXEL_ROWS).astype(np.uint32)
        row = self.row[which] * SUPERPIXEL_ROWS + (bit % SUPERPIXEL_ROWS).astype(np.uint32)
        return self.sensor[which], column.astype(np.uint32), row.astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class RetinaClusters:
    """Clusters of any number of sensors; all arrays u32[n].

    `sensor` 0..207; `column` 0..767 and `row` 0..255 of the pixel; `fraction_x` and `fraction_y` in units of
    1 / 2**fraction_bits of a pixel; `flags` are the word's upper bits, kept as they are.  `fraction_bits` is 3 in
    bank version 2 and 2 in versions 3 and 4.
    """

    sensor: NDArray[np.uint32]
    column: NDArray[np.uint32]
    row: NDArray[np.uint32]
    fraction_x: NDArray[np.uint32]
    fraction_y: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    fraction_bits: int


def superpixels_of_pixels(
    sensor: NDArray[np.uint32], column: NDArray[np.uint32], row: NDArray[np.uint32]
) -> SuperPixels:
    """Super-pixels of lit pixels (repeats allowed), ordered by sensor, column and row, with the isolation hint.

    Real banks set the hint if and only if none of the eight neighbouring super-pixels is lit, across chip borders too.
    """
    _check_range("pixel", sensor=(sensor, N_SENSORS), column=(column, N_COLUMNS), row=(row, N_ROWS))
    # One border cell on each side: the key of a neighbour never wraps into the next column or sensor.
    rows, columns = N_ROWS // SUPERPIXEL_ROWS + 2, N_COLUMNS // SUPERPIXEL_COLUMNS + 2
    sp_column, sp_row = column // SUPERPIXEL_COLUMNS, row // SUPERPIXEL_ROWS
    key = ((sensor.astype(np.int64) * columns) + sp_column + 1) * rows + sp_row + 1
    bit = np.uint8(1) << (column % SUPERPIXEL_COLUMNS * SUPERPIXEL_ROWS + row % SUPERPIXEL_ROWS).astype(np.uint8)
    keys, inverse = np.unique(key, return_inverse=True)
    pattern = np.zeros(len(keys), np.uint8)
    np.bitwise_or.at(pattern, inverse, bit)
    has_neighbour = np.zeros(len(keys), np.bool_)
    for step in (1, rows - 1, rows, rows + 1):
        at = np.searchsorted(keys, keys + step)
        found = np.flatnonzero((at < len(keys)) & (keys[np.minimum(at, len(keys) - 1)] == keys + step))
        has_neighbour[found] = True
        has_neighbour[at[found]] = True
    column_and_sensor, row_key = np.divmod(keys, rows)
    sensor_key, column_key = np.divmod(column_and_sensor, columns)
    return SuperPixels(
        sensor_key.astype(np.uint32),
        (column_key - 1).astype(np.uint32),
        (row_key - 1).astype(np.uint32),
        pattern.astype(np.uint32),
        (~has_neighbour).astype(np.uint32),
    )


def decode_superpixels(banks: Iterable[RawBank]) -> SuperPixels:
    """Decode VP banks, in their order; banks of other types are skipped.  Raises VeloBankError."""
    words, sensor = _words_of(banks, LhcbBankType.VP, _SUPERPIXEL_SENSOR_BIT)
    superpixels = SuperPixels(
        sensor=sensor,
        column=words >> np.uint32(14) & np.uint32(0x1FF),
        row=words >> np.uint32(8) & np.uint32(0x3F),
        pattern=words & np.uint32(0xFF),
        isolated=words >> np.uint32(31),
    )
    _check_range("super-pixel", column=(superpixels.column, N_COLUMNS // SUPERPIXEL_COLUMNS))
    return superpixels


def encode_superpixels(superpixels: SuperPixels, version: int) -> list[RawBank]:
    """One VP bank per sensor (versions 2, 3) or sensor pair (4), empty ones included; order within a bank is kept.

    Source ids are those of simulated banks: the number of the sensor or pair.  Raises VeloBankError.
    """
    it = superpixels
    _check_range(
        "super-pixel",
        sensor=(it.sensor, N_SENSORS),
        column=(it.column, N_COLUMNS // SUPERPIXEL_COLUMNS),
        row=(it.row, N_ROWS // SUPERPIXEL_ROWS),
        pattern=(it.pattern, 0x100),
        isolated=(it.isolated, 2),
    )
    words = it.pattern | it.row << np.uint32(8) | it.column << np.uint32(14) | it.isolated << np.uint32(31)
    return _banks_of(words, it.sensor, LhcbBankType.VP, version, _SUPERPIXEL_SENSOR_BIT)


def decode_retina_clusters(banks: Sequence[RawBank]) -> RetinaClusters:
    """Decode VPRetinaCluster banks, in their order; banks of other types are skipped.

    All banks must have the same number of fraction bits; without banks the result has that of version 4. Raises
    VeloBankError.
    """
    words, sensor = _words_of(banks, LhcbBankType.VP_RETINA_CLUSTER, _RETINA_SENSOR_BIT)
    versions = {bank.version for bank in banks if bank.type == LhcbBankType.VP_RETINA_CLUSTER} or {
        _READABLE_VERSIONS[-1]
    }
    bits = {_fraction_bits(version) for version in versions}
    if len(bits) > 1:
        raise VeloBankError(RejectReason.MISMATCH, f"retina clusters: bank versions {sorted(versions)} mixed")
    (fraction_bits,) = bits
    fraction_mask = np.uint32((1 << fraction_bits) - 1)
    row_at, fraction_x_at = fraction_bits, fraction_bits + 8
    column_at = fraction_x_at + fraction_bits
    # In version 4 the sensor bit is the lowest flag bit; _words_of cleared it.
    clusters = RetinaClusters(
        sensor=sensor,
        column=words >> np.uint32(column_at) & np.uint32(0x3FF),
        row=words >> np.uint32(row_at) & np.uint32(0xFF),
        fraction_x=words >> np.uint32(fraction_x_at) & fraction_mask,
        fraction_y=words & fraction_mask,
        flags=words >> np.uint32(column_at + 10),
        fraction_bits=fraction_bits,
    )
    _check_range("retina cluster", column=(clusters.column, N_COLUMNS))
    return clusters


def encode_retina_clusters(
    clusters: RetinaClusters, version: int, event: NDArray[np.int64] | None = None, n_events: int = 1
) -> list[RawBank]:
    """One VPRetinaCluster bank per sensor (versions 2, 3) or sensor pair (4), as encode_superpixels does.

    For several events, `event` is the event number (0, 1, ...) of each cluster; the banks of the events follow one
    another. In version 4 the lowest bit of `flags` must be 0: it holds the sensor bit.  Raises VeloBankError.
    """
    it = clusters
    _check_version("retina clusters", version)
    if _fraction_bits(version) != it.fraction_bits:
        raise VeloBankError(
            RejectReason.MISMATCH,
            f"retina clusters: version {version} has {_fraction_bits(version)} fraction bits, not {it.fraction_bits}",
        )
    column_at = 2 * it.fraction_bits + 8
    _check_range(
        "retina cluster",
        sensor=(it.sensor, N_SENSORS),
        column=(it.column, N_COLUMNS),
        row=(it.row, N_ROWS),
        fraction_x=(it.fraction_x, 1 << it.fraction_bits),
        fraction_y=(it.fraction_y, 1 << it.fraction_bits),
        flags=(it.flags, 1 << (32 - column_at - 10)),
    )
    words = (
        it.fraction_y
        | it.row << np.uint32(it.fraction_bits)
        | it.fraction_x << np.uint32(it.fraction_bits + 8)
        | it.column << np.uint32(column_at)
        | it.flags << np.uint32(column_at + 10)
    )
    return _banks_of(words, it.sensor, LhcbBankType.VP_RETINA_CLUSTER, version, _RETINA_SENSOR_BIT, event, n_events)


def _fraction_bits(version: int) -> int:
    return 3 if version == VeloVersion.EIGHTHS else 2


def _check_version(what: str, version: int) -> None:
    if version not in _READABLE_VERSIONS:
        raise VeloBankError(
            RejectReason.BAD_VERSION, f"{what}: bank version {version}, {_READABLE_VERSIONS} are supported"
        )


def _check_range(what: str, **columns: tuple[NDArray[np.uint32], int]) -> None:
    for name, (values, end) in columns.items():
        if len(values) and int(values.max()) >= end:
            raise VeloBankError(RejectReason.MALFORMED, f"{what}: {name} {int(values.max())}, 0..{end - 1} expected")


def _words_of(
    banks: Iterable[RawBank], bank_type: LhcbBankType, sensor_bit: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """All data words of the banks of `bank_type`, and the sensor of each; the sensor bit of version 4 is cleared."""
    words: list[NDArray[np.uint32]] = []
    sensors: list[NDArray[np.uint32]] = []
    for bank in banks:
        if bank.type != bank_type:
            continue
        where = f"{bank_type.name} bank of source {bank.source_id}"
        _check_version(where, bank.version)
        size = len(bank.payload)
        if size % _WORD.itemsize:
            raise VeloBankError(RejectReason.BAD_SIZE, f"{where}: {size} bytes are not whole words")
        data = np.frombuffer(bank.payload, _WORD).astype(np.uint32)
        if bank.version >= VeloVersion.SENSOR_PAIRS:
            pair = bank.source_id & _SENSOR_PAIR_MASK
            first, last = 2 * pair, 2 * pair + 1
            picked = data >> np.uint32(sensor_bit) & np.uint32(1)
            sensor = picked + np.uint32(first)
            data &= np.uint32(0xFFFF_FFFF ^ 1 << sensor_bit)
        else:
            first = last = number_of(bank.source_id)
            if len(data) == 0 or int(data[0]) != len(data) - 1:
                announced = int(data[0]) if len(data) else "no"
                raise VeloBankError(RejectReason.BAD_SIZE, f"{where}: {announced} words announced, {size} bytes found")
            data = data[1:]
            sensor = np.full(len(data), first, np.uint32)
        if last >= N_SENSORS:
            raise VeloBankError(RejectReason.UNKNOWN_SOURCE, f"{where}: sensor {last}, 0..{N_SENSORS - 1} expected")
        words.append(data)
        sensors.append(sensor)
    if not words:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    return np.concatenate(words), np.concatenate(sensors)


def _banks_of(
    words: NDArray[np.uint32],
    sensor: NDArray[np.uint32],
    bank_type: LhcbBankType,
    version: int,
    sensor_bit: int,
    event: NDArray[np.int64] | None = None,
    n_events: int = 1,
) -> list[RawBank]:
    _check_version(bank_type.name, version)
    pairs = version >= VeloVersion.SENSOR_PAIRS
    if pairs:
        if (words >> np.uint32(sensor_bit) & np.uint32(1)).any():
            raise VeloBankError(
                RejectReason.MALFORMED, f"{bank_type.name}: the flags use bit {sensor_bit}, which holds the sensor"
            )
        words = words | (sensor & np.uint32(1)) << np.uint32(sensor_bit)
    per_event = N_SENSORS // 2 if pairs else N_SENSORS
    n_banks = n_events * per_event
    number = (sensor // 2 if pairs else sensor).astype(np.int64) + (0 if event is None else per_event * event)
    order = np.argsort(number, kind="stable")
    ordered = words[order].astype(_WORD)
    ends = np.searchsorted(number[order], np.arange(n_banks), side="right")
    counts = np.diff(ends, prepend=0)
    n_before = 0 if pairs else 1  # the count word
    bank_ends = np.cumsum(counts + n_before)
    stream = np.empty(int(bank_ends[-1]), _WORD)
    stream[np.arange(len(ordered)) + np.repeat(n_before * np.arange(1, n_banks + 1), counts)] = ordered
    if not pairs:
        stream[bank_ends - counts - 1] = counts
    return cut_into_banks(stream.tobytes(), _WORD.itemsize * bank_ends, bank_type, version, range(per_event))
