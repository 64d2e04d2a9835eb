"""The layout of the luminosity summaries that a chain writes (docs/formats/trigger-banks.md)."""

from collections.abc import Sequence

from hltnode.protocol.raw_data.lumi_summary import CounterRange, LumiSchema

# Counters of every luminosity summary, in the order of LumiSource in protocol/trigger_banks.h. T0 is the GPS time (µs)
# of the first crossing of the run's orbit 0, BCID the number of the crossing since then.
KNOWN_COUNTERS = (("T0Low", 32), ("T0High", 32), ("BCIDLow", 32), ("BCIDHigh", 14), ("BXType", 2), ("GEC", 1))
# Counts above the largest value of this many bits are stored as that value.
COUNT_BITS = 16


def counter_name(collection: str) -> str:
    """Name of the luminosity counter of a collection: "long_tracks" becomes "LongTracks"."""
    return "".join(part[:1].upper() + part[1:] for part in collection.split("_"))


def lumi_schema(collections: Sequence[str], summary: Sequence[CounterRange] = ()) -> LumiSchema:
    """The layout of the luminosity summary of a chain: with the counters of its summary, or with its collections."""
    known = (CounterRange(name, (1 << bits) - 1) for name, bits in KNOWN_COUNTERS)
    largest = (1 << COUNT_BITS) - 1
    return LumiSchema.of((*known, *(summary or (CounterRange(counter_name(each), largest) for each in collections))))
