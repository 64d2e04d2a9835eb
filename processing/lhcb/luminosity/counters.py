"""The counters of the luminosity summary: names, largest stored numbers, shifts and scales.

Names, ranges and packing are those of LHCb's luminosity counters, so that its tools find the same layout
(docs/formats/trigger-banks.md). The groups are in the order of the kernel's results.
"""

from hltnode.protocol.lhcb.banks.plume import LUMI_CHANNELS, MAX_ADC
from hltnode.protocol.raw_data.lumi_summary import CounterRange

ETA_EDGES = (2.0, 3.0, 4.0, 5.0)
"""Bins of pseudorapidity of VELO tracks: below -4, to -3, to -2, to 2, to 3, to 4, to 5, above."""
MODULES_OF_STATION = (5, 5, 6)
"""Modules of a quarter of a SciFi station."""
ECAL_PARTS = ("OuterTop", "MiddleTop", "InnerTop", "OuterBottom", "MiddleBottom", "InnerBottom")
_MUON_REGIONS = (696, 593, 263, 200, 478, 212, 161, 102, 134, 108, 409, 227)
_TRACKS_OF_ETA = (68, 294, 302, 287, 471, 427, 328, 81)

VELO = (
    CounterRange("VeloTracks", 1913),
    CounterRange("VeloFiducialTracks", 1913),
    *(CounterRange(f"VeloTracksEtaBin{i}", largest) for i, largest in enumerate(_TRACKS_OF_ETA)),
)
VERTICES = (
    CounterRange("VeloVertices", 33),
    CounterRange("FiducialVeloVertices", 33),
    CounterRange("VeloVertexX", 0x3FFF, 0x2000, 1638.4),
    CounterRange("VeloVertexY", 0x3FFF, 0x2000, 1638.4),
    CounterRange("VeloVertexZ", 0x3FFF, 0x2000, 16.384),
)
SCIFI = (
    *(CounterRange(f"SciFiT{i + 1}M123", largest) for i, largest in enumerate((7650, 7590, 7890))),
    CounterRange("SciFiT1M4", 2100),
    CounterRange("SciFiT2M4", 2350),
    CounterRange("SciFiT3M45", 4100),
    *(
        CounterRange(f"SciFiT{station + 1}Q{quarters}M{module}", 0x1FFF if module < 4 else 0x3FF)
        for station, n_modules in enumerate(MODULES_OF_STATION)
        for module in range(n_modules)
        for quarters in ("02", "13")
    ),
)
ECAL = (
    CounterRange("ECalET", 0x1FFFFF, 0x10000, 0.2),
    CounterRange("ECalEtot", 0x7FFFFF, 0x10000, 0.0667),
    *(CounterRange(f"ECalET{part}", 0x3FFFF, 0x4000, 0.2) for part in ECAL_PARTS),
)
"""MeV."""
MUON = (
    *(
        CounterRange(f"MuonHitsM{station}R{region}", _MUON_REGIONS[4 * (station - 2) + region - 1])
        for station in (2, 3, 4)
        for region in (1, 2, 3, 4)
    ),
    CounterRange("LongMuons", 127),
)
PLUME = (
    CounterRange("PlumeAvgLumiADC", 0x7FFFF, 0, 128.0),
    CounterRange("PlumeLumiOverthrLow", 0x3FFFFF),
    CounterRange("PlumeLumiOverthrHigh", 0x3FFFFF),
    *(CounterRange(f"PlumeLumiADC{i:02}", MAX_ADC) for i in range(len(LUMI_CHANNELS))),
)
STATE = (CounterRange("PlumeRead", 1), CounterRange("Saturated", 1))
"""PlumeRead: 1 for an event with a valid bank of PLUME. Saturated: 1 if the number of a counter did not fit."""

GROUPS = (VELO, VERTICES, SCIFI, ECAL, MUON, PLUME, STATE)
COUNTERS = tuple(counter for group in GROUPS for counter in group)
