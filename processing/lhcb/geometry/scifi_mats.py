"""The SciFi for kernels: positions of the channels of each mat, order of the mats by x, and their banks.

A hit is at half-channel h = 2 cell + fraction of a SiPM, so at u = half_pitch h + die_gap [cell > 63] + sipm_pitch sipm
from the first one of its mat. Extended along its fibre to y = 0 it is at x_first + dx_du u, z_first + dz_du u. Inside a
mat x rises or falls with u; mats of a zone follow each other in x without overlap. So hits are in the order of x if the
hits of each mat are consecutive, in ascending or descending order of channels.
"""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.ideal_scifi import (
    CHANNELS_PER_SIPM,
    FIRST_MAT,
    N_LAYERS,
    N_MAT_INDICES,
    SIPMS_PER_MAT,
)
from hltnode.processing.lhcb.geometry.scifi import GEOMETRY_FILE, N_MATS, SciFiGeometry
from hltnode.processing.lhcb.geometry.scifi_sipms import MAX_LISTED_BANKS, NO_SIPM
from hltnode.protocol.lhcb.banks.scifi import N_BANKS
from hltnode.protocol.lhcb.banks.scifi_links import LINKS_OF_BANK

N_ZONES = 2 * N_LAYERS
ZONE_STRIDE = N_ZONES + 8
NO_PLACE = 0xFFFF
CHANNELS_PER_MAT = 512

MAT = np.dtype(
    [
        ("x_first", "<f4"),
        ("dx_du", "<f4"),
        ("z_first", "<f4"),
        ("dz_du", "<f4"),
        ("y_end_first", "<f4"),
        ("dy_end_du", "<f4"),
        ("length_y", "<f4"),
        ("dx_dy", "<f4"),
        ("dz_dy", "<f4"),
        ("half_pitch", "<f4"),
        ("die_gap", "<f4"),
        ("sipm_pitch", "<f4"),
        ("place", "<u4"),
        ("zone", "<u4"),
        ("falls", "<u4"),
        ("bank", "<u4"),
    ]
)
MAT_COMMENTS = {
    "x_first": "mm, of half-channel 0 at y = 0",
    "z_first": "mm, at y = 0",
    "y_end_first": "mm, end near the beam of the fibre of half-channel 0",
    "length_y": "mm, from that end to the SiPM; negative below the beam",
    "half_pitch": "mm",
    "die_gap": "mm",
    "sipm_pitch": "mm",
    "place": "in the order of zone and x",
    "falls": "1 if x falls with the channel",
    "bank": "bank of the mat",
}
READ_OUT = np.dtype(
    [
        ("first_mat", "<u2", (N_BANKS,)),
        ("n_mats", "<u2", (N_BANKS,)),
        ("mat", "<u2", (N_MATS,)),
        ("first_place", "<u2", (ZONE_STRIDE,)),
        ("n_masked", "<u4"),
        ("masked", "<u4", (N_MAT_INDICES * CHANNELS_PER_MAT // 32,)),
    ]
)
READ_OUT_COMMENTS = {
    "first_mat": "index of the mat of link 0 of each bank",
    "n_mats": "number of consecutive mats of each bank",
    "mat": "at each place, in the order of zone and x",
    "first_place": "of each zone; from 24 on: the number of mats",
    "n_masked": "channels",
    "masked": "a bit for each channel, 512 times the mat index plus the channel",
}


SIPMS = np.dtype(
    [
        ("n_banks", "<u4"),
        ("source", "<u2", (MAX_LISTED_BANKS,)),
        ("place", "<u2", (MAX_LISTED_BANKS * LINKS_OF_BANK,)),
    ]
)
SIPMS_COMMENTS = {
    "n_banks": "with lists of SiPMs",
    "source": "id of each bank, rising",
    "place": "of the SiPM of each link: 4 times that of its mat plus its number there; 65535: off",
}


def mat_table(geometry: SciFiGeometry) -> NDArray[np.void]:
    """MAT[1536] by mat index; zeros and the place 65535 for a missing mat.

    Raises GeometryError for mats of a zone that overlap in x at y = 0, or in which x neither rises nor falls.
    """
    exists = geometry.half_pitch > 0
    (mats,) = np.nonzero(exists)
    table = np.zeros(N_MAT_INDICES, MAT)
    point, direction = geometry.mirror_point.astype(np.float64), geometry.ddx.astype(np.float64)
    dx_dy, dz_dy = geometry.dx_dy.astype(np.float64), geometry.dz_dy.astype(np.float64)
    u = geometry.u_begin.astype(np.float64) + geometry.half_pitch
    table["dx_du"] = direction[:, 0] - dx_dy * direction[:, 1]
    table["dz_du"] = direction[:, 2] - dz_dy * direction[:, 1]
    table["x_first"] = point[:, 0] - dx_dy * point[:, 1] + table["dx_du"] * u
    table["z_first"] = point[:, 2] - dz_dy * point[:, 1] + table["dz_du"] * u
    table["y_end_first"] = point[:, 1] + direction[:, 1] * u
    table["dy_end_du"] = direction[:, 1]
    for name in ("length_y", "dx_dy", "dz_dy", "half_pitch", "die_gap", "sipm_pitch"):
        table[name] = getattr(geometry, name)
    channel = np.arange(FIRST_MAT, FIRST_MAT + N_MAT_INDICES) << 9
    table["zone"] = 2 * ((channel >> 16) - 4) + (channel >> 15 & 1)
    table["falls"] = table["dx_du"] < 0
    table["place"] = NO_PLACE
    table[~exists] = np.array([(0,) * 12 + (NO_PLACE, 0, 0, 0)], MAT)
    ordered = mats[np.lexsort((table["x_first"][mats], table["zone"][mats]))]
    table["place"][ordered] = np.arange(len(ordered))
    table["bank"][mats] = _bank_of(geometry, mats) if len(geometry.first_channel) else 0
    _check_order(table[ordered], ordered)
    return table


def read_out_table(geometry: SciFiGeometry) -> NDArray[np.void]:
    """READ_OUT[1]: the mats of each bank, and of each zone. Raises GeometryError as mat_table does, and for banks that
    begin inside a mat or whose mats are not consecutive."""
    mats = mat_table(geometry)
    table = np.zeros(1, READ_OUT)
    exists = mats["place"] != NO_PLACE
    table["mat"] = np.argsort(mats["place"], kind="stable")[:N_MATS]
    table["first_place"] = np.searchsorted(np.sort(mats["zone"][exists]), np.arange(ZONE_STRIDE))
    if not len(geometry.first_channel):
        return table  # no bank reads a mat
    if (geometry.first_channel % CHANNELS_PER_MAT).any():
        raise GeometryError(f"{GEOMETRY_FILE}: a bank begins inside a mat")
    first = (geometry.first_channel >> np.uint32(9)).astype(np.int64) - FIRST_MAT
    n_mats = np.bincount(mats["bank"][exists], minlength=N_BANKS)
    for bank, (begin, n) in enumerate(zip(first, n_mats, strict=True)):
        if n == 0:
            raise GeometryError(f"{GEOMETRY_FILE}: bank {bank} reads no mat")
        if not (exists[begin : begin + n] & (mats["bank"][begin : begin + n] == bank)).all():
            raise GeometryError(f"{GEOMETRY_FILE}: the mats of bank {bank} do not stand together")
    table["first_mat"], table["n_mats"] = first, n_mats
    return table


def sipm_table(geometry: SciFiGeometry) -> NDArray[np.void]:
    """SIPMS[1]: the place of the SiPM of each link, by rising source id; no bank if the geometry lists no SiPMs."""
    table = np.zeros(1, SIPMS)
    table["place"] = NO_PLACE
    if geometry.sipms is None:
        return table
    mats, listed = mat_table(geometry), geometry.sipms
    order = np.argsort(listed.source)
    n, sipm = len(order), listed.sipm[order]
    on = sipm != NO_SIPM
    mat = (sipm[on] >> np.uint32(9)).astype(np.int64) - FIRST_MAT
    places = np.full((n, LINKS_OF_BANK), NO_PLACE, np.uint16)
    places[on] = SIPMS_PER_MAT * mats["place"][mat] + (sipm[on] >> np.uint32(7) & np.uint32(SIPMS_PER_MAT - 1))
    table["n_banks"] = n
    table["source"][0, :n], table["place"][0, : n * LINKS_OF_BANK] = listed.source[order], places.ravel()
    return table


def _bank_of(geometry: SciFiGeometry, mats: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bank of each mat: the last one whose first channel is not above that of the mat."""
    order = np.argsort(geometry.first_channel, kind="stable")
    before = np.searchsorted(geometry.first_channel[order], (mats + FIRST_MAT) << 9, side="right") - 1
    if before.min() < 0:
        raise GeometryError(f"{GEOMETRY_FILE}: mat {mats[before.argmin()]} is read by no bank")
    return order[before]


def _check_order(mats: NDArray[np.void], index: NDArray[np.int64]) -> None:
    """True if x rises from each hit to the next, in float32, along `mats` in the order of x."""
    half_channel, die, sipm = 2 * CHANNELS_PER_SIPM - 1, 1, 3
    width = mats["half_pitch"] * half_channel + mats["die_gap"] * die + mats["sipm_pitch"] * sipm
    of_sipm = mats["half_pitch"] * (half_channel + 1) + mats["die_gap"]
    if (mats["dx_du"] == 0).any() or (mats["die_gap"] < 0).any() or (mats["sipm_pitch"] < of_sipm).any():
        raise GeometryError(f"{GEOMETRY_FILE}: the channels of a mat do not follow one another in x")
    other_end = mats["x_first"] + mats["dx_du"] * width
    low, high = np.minimum(mats["x_first"], other_end), np.maximum(mats["x_first"], other_end)
    overlap = (low[1:] <= high[:-1]) & (mats["zone"][1:] == mats["zone"][:-1])
    if overlap.any():
        (at, *_) = np.flatnonzero(overlap)
        raise GeometryError(
            f"{GEOMETRY_FILE}: mats {index[at]} and {index[at + 1]} overlap in x: one ends at {high[at]:.3f} mm, the "
            f"next begins at {low[at + 1]:.3f} mm"
        )
