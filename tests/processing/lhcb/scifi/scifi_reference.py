"""The SciFi part of HLT1 on the CPU back end, as a reference for other ways to run its kernels."""

from __future__ import annotations

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from tests.processing.framework.kernel_runner import Allocate, Launch, host_memory, run_algorithms
from tests.processing.lhcb.scifi.scifi_chain import SciFiChain, limits_of, scifi_constants, uncut_chain

PLACES = ("scifi_hits.offset", "scifi_hits.bound")


class Reference:
    """One batch on the CPU back end, compared with other ways to run its kernels."""

    def __init__(self, geometry: SciFiGeometry, mep: EncodedMep) -> None:
        self._limits = limits_of(mep)
        chain = SciFiChain(geometry, self._limits, retain=("scifi_hits.bound",))
        self.events = chain.run(mep)
        workspace = chain.workspace
        inputs = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")
        self._given = {name: workspace.host_array(name).copy() for name in inputs}
        self._given["events.flags"][:] = 0
        self._given |= scifi_constants(geometry)
        self._made = {name: workspace.fetch(name) for name in PLACES}
        self._flags = [event.flags for event in self.events]

    def differences(self, launch: Launch, allocate: Allocate = host_memory) -> list[str]:
        """The flags, bounds, offsets and hits that differ, by event."""
        n = len(self.events)
        made = run_algorithms(tuple(uncut_chain().sequence), self._given, n, self._limits, launch, allocate=allocate)
        found = [] if made["events.flags"][:n].tolist() == self._flags else ["flags"]
        for event, expected in enumerate(self.events):
            first = int(self._made["scifi_hits.offset"][event])
            last = first + len(expected.ids)
            same = {
                "count": int(made["scifi_hits.count"][event]) == last - first,
                "bound": made["scifi_hits.bound"][event] == self._made["scifi_hits.bound"][event],
                "offset": int(made["scifi_hits.offset"][event]) == first,
                "zone_offset": made["scifi_hits.zone_offset"].reshape(-1, 32)[event].tolist()
                == expected.zone_offset.tolist(),
                "x": made["scifi_hits.x"][first:last].tobytes() == expected.x.tobytes(),
                "z": made["scifi_hits.z"][first:last].tobytes() == expected.z.tobytes(),
                "id": made["scifi_hits.id"][first:last].tobytes() == expected.ids.tobytes(),
                "info": made["scifi_hits.info"][first:last].tobytes() == expected.info.tobytes(),
            }
            found += [f"{name} of event {event}" for name, equal in same.items() if not equal]
        return found
