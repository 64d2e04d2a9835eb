"""The conditions of LHCb: beam line, polarity of the magnet, positions of the VELO halves, and masked channels.

The geometry files describe the nominal detector. A condition changes the records for kernels that were made from them
(docs/how-to/conditions.md).
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.lhcb.calorimeter.collections import ecal_geometry
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS, NO_CELL
from hltnode.processing.lhcb.geometry.ideal_scifi import CHANNELS_PER_SIPM, FIRST_MAT, N_MAT_INDICES
from hltnode.processing.lhcb.geometry.ideal_velo import CHIPS_PER_SENSOR, N_SENSORS
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP
from hltnode.processing.lhcb.geometry.muon_cells import NO_CELL as NO_MUON_CELL
from hltnode.processing.lhcb.geometry.scifi_mats import CHANNELS_PER_MAT
from hltnode.processing.lhcb.geometry.ut_groups import NO_SECTOR
from hltnode.processing.lhcb.geometry.velo_halves import OPENING, POSITIONS, SIDES, module_shifts, move_sensors
from hltnode.processing.lhcb.muon.collections import muon_geometry
from hltnode.processing.lhcb.scifi.collections import scifi_read_out
from hltnode.processing.lhcb.tracks.kalman.collections import velo_field
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters
from hltnode.processing.lhcb.tracks.matching.seeding_tables import seeding_tables
from hltnode.processing.lhcb.ut.collections import ut_geometry, ut_tables
from hltnode.processing.lhcb.velo.collections import velo_geometry
from hltnode.processing.selection.configuration.conditions import AnyCondition, Condition, DetectorCondition
from hltnode.protocol.lhcb.banks.ut import N_BOARDS, N_LANES

Records = Mapping[str, NDArray[np.void]]

# The foil of the closed VELO is 3.5 mm from the nominal beam line: a beam that is further off hits it.
_LARGEST_OFFSET = 3.5
# 2 % of the primary vertices are lost with a beam line that is 0.055 mm off (docs/physics/primary-vertices.md).
_TOLERANCE = 0.05
# A beam on the axis at z = 0 with this slope is 3 mm off at the end of the VELO, z = 751 mm: nearly at the foil. The
# crossing angles of the beams are ten times smaller.
_LARGEST_SLOPE = 0.004
# The halves of the open VELO are 29 mm from their closed places.
_LARGEST_OPENING = 60.0
# The halves close around the measured beam, which is inside this range.
_LARGEST_HALF_OFFSET = 5.0

FIRST_CHANNEL = FIRST_MAT * CHANNELS_PER_MAT
LAST_CHANNEL = FIRST_CHANNEL + N_MAT_INDICES * CHANNELS_PER_MAT - 1
"""Of the SciFi: the last 28 bits of LHCbIDs."""
FIRST_SIPM = FIRST_CHANNEL // CHANNELS_PER_SIPM

MAGNET_POLARITY = "magnet_polarity"
_WITH_POLARITY: tuple[Column, ...] = (ut_tables, long_track_parameters, seeding_tables)


def _set_polarity(records: Records, value: float) -> None:
    before = None
    for column in _WITH_POLARITY:
        if column.name in records:
            before = float(records[column.name]["polarity"].item())
            records[column.name]["polarity"] = value
    if before is not None and velo_field.name in records:
        # The fringe field in the VELO has no sign of its own: it changes with that of the others.
        for member in ("bend", "gradient"):
            records[velo_field.name][member] *= value * before


def _move_velo(name: str, records: Records, value: float) -> None:
    record = records[velo_geometry.name]
    move_sensors(record["module_z"][0], record["local_to_global"][0], module_shifts({name: value}))


def _mask_velo(records: Records, asics: tuple[int, ...]) -> None:
    record = records[velo_geometry.name]
    sensor, asic = np.divmod(np.array(asics, np.int64), CHIPS_PER_SENSOR)
    _set_bits(record["masked_asics"][0], 4 * sensor + asic)
    record["n_masked_asics"] = len(asics)


def _mask_sipms(records: Records, sipms: tuple[int, ...]) -> None:
    first = np.array(sipms, np.int64)[:, None] * CHANNELS_PER_SIPM
    _mask_scifi(records, (first + np.arange(CHANNELS_PER_SIPM)).ravel())


def _mask_channels(records: Records, channels: tuple[int, ...]) -> None:
    _mask_scifi(records, np.array(channels, np.int64))


def _mask_scifi(records: Records, channels: NDArray[np.int64]) -> None:
    record = records[scifi_read_out.name]
    _set_bits(record["masked"][0], channels - FIRST_CHANNEL)
    record["n_masked"] = np.bitwise_count(record["masked"]).sum()


def _set_bits(words: NDArray[np.uint32], bits: NDArray[np.int64]) -> None:
    np.bitwise_or.at(words, bits // 32, np.uint32(1) << (bits % 32).astype(np.uint32))


def _mask_ut(records: Records, lanes: tuple[int, ...]) -> None:
    records[ut_geometry.name]["sector_of_lane"][0, list(lanes)] = NO_SECTOR


def _mask_muon(records: Records, tiles: tuple[int, ...]) -> None:
    record = records[muon_geometry.name]
    (masked,) = np.nonzero(np.isin(record["cell"]["tile"][0], tiles))
    channels = record["cell_of_channel"]
    channels[np.isin(channels, masked)] = NO_MUON_CELL


def _mask_ecal(records: Records, cells: tuple[int, ...]) -> None:
    channels = records[ecal_geometry.name]["cell_of_channel"]
    channels[np.isin(channels, cells)] = NO_CELL


CONDITIONS: tuple[AnyCondition, ...] = (
    *(
        Condition(
            name=f"beam_{axis}",
            column=velo_geometry,
            member=f"beamline_{axis}",
            low=-_LARGEST_OFFSET,
            high=_LARGEST_OFFSET,
            unit="mm",
            histogram=f"beam_{axis}",
            tolerance=_TOLERANCE,
            checked_by=tuple(f"beam_{axis}_of_velo_{side}" for side in SIDES),
            required=True,
        )
        for axis in ("x", "y")
    ),
    *(
        Condition(
            name=f"beam_slope_{axis}",
            column=velo_geometry,
            member=f"beamline_slope_{axis}",
            low=-_LARGEST_SLOPE,
            high=_LARGEST_SLOPE,
            unit="",
        )
        for axis in ("x", "y")
    ),
    DetectorCondition(
        name=MAGNET_POLARITY,
        columns=(*_WITH_POLARITY, velo_field),
        change=_set_polarity,
        low=DOWN,
        high=UP,
        choices=(DOWN, UP),
        required=True,
        member="polarity",
        # Collisions of protons make more positive particles than negative ones (docs/physics/charge-excess.md).
        more="long_x_positive",
        fewer="long_x_negative",
    ),
    DetectorCondition(
        name=OPENING,
        columns=(velo_geometry,),
        change=partial(_move_velo, OPENING),
        low=0.0,
        high=_LARGEST_OPENING,
        unit="mm",
        required=True,
    ),
    *(
        DetectorCondition(
            name=name,
            columns=(velo_geometry,),
            change=partial(_move_velo, name),
            low=-_LARGEST_HALF_OFFSET,
            high=_LARGEST_HALF_OFFSET,
            unit="mm",
        )
        for name in POSITIONS
    ),
    *(
        DetectorCondition(name=name, columns=(column,), change=change, low=first, high=last, lists=True)
        for name, column, change, first, last in (
            ("masked_velo_asics", velo_geometry, _mask_velo, 0, CHIPS_PER_SENSOR * N_SENSORS - 1),
            ("masked_scifi_sipms", scifi_read_out, _mask_sipms, FIRST_SIPM, LAST_CHANNEL // CHANNELS_PER_SIPM),
            ("masked_scifi_channels", scifi_read_out, _mask_channels, FIRST_CHANNEL, LAST_CHANNEL),
            ("masked_ut_lanes", ut_geometry, _mask_ut, 0, N_BOARDS * N_LANES - 1),
            ("masked_muon_tiles", muon_geometry, _mask_muon, 0, (1 << 28) - 1),
            ("masked_ecal_cells", ecal_geometry, _mask_ecal, 0, N_CELLS - 1),
        )
    ),
)
"""The beam line in the LHCb frame, instead of that of the geometry: its position at z = 0 and its slopes. The polarity
of the magnet. The opening of the VELO and the offsets of its halves, in addition to the geometry. Channels whose hits
are ignored: VELO ASICs (3 times the sensor plus the ASIC), SciFi SiPMs and channels (by channel id), UT lanes (6 times
the board plus the lane), tile ids of the muon stations, ECAL cells."""
