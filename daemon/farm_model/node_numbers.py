"""The numbers that all nodes of a farm share, from its description."""

from dataclasses import dataclass

from hltnode.daemon.common.vocabulary import SlowConsumerPolicy
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.slots import SlotLimits
from hltnode.daemon.farm_model.description import ConsumerOutput, FarmDescription
from hltnode.daemon.node.sizing import slot_limits

FIRST, LAST = 0, 1
"""The two sources of the builder: the first fragment of a MEP, and all others, which count when the last one comes."""
PARTS = (FIRST, LAST)
PADDING = 8
"""A MEP has at least 8 bytes in each part: MFPs lie at multiples of 8."""
NS = 1_000_000_000


def to_ns(seconds: float) -> int:
    """A time in ns."""
    return round(seconds * NS)


@dataclass(frozen=True, slots=True)
class NodeNumbers:
    """The numbers that all nodes of a farm share. Times in ns, rates in bytes per ns."""

    config: NodeConfig
    slots: SlotLimits
    events_per_mep: int
    part_bytes: tuple[int, int]
    part_ns: tuple[int, int]
    disk: float
    written_bytes_per_event: float
    control_ns: int
    back_ends: int

    @classmethod
    def of(cls, description: FarmDescription) -> "NodeNumbers":
        """The numbers of a description."""
        config, nodes = description.node_config(), description.nodes
        limits = slot_limits(config)
        link = nodes.link_bytes_per_second * 1e-9
        sources = max(1, description.readout.sources)
        first = _padded(description.mep_bytes / sources)
        parts = first, _padded(description.mep_bytes - first) if sources > 1 else PADDING
        # A slot holds as many MEPs as with all sources, although each has two parts here.
        meps = max(1, min(limits.meps, limits.fragments // sources))
        slots = SlotLimits(
            input_bytes=limits.input_bytes,
            events=limits.events,
            meps=meps,
            fragments=meps * len(PARTS),
            mep_bytes=limits.mep_bytes,
        )
        return cls(
            config=config,
            slots=slots,
            events_per_mep=description.readout.events_per_mep,
            part_bytes=parts,
            part_ns=(int(parts[FIRST] / link), int(parts[LAST] / link)),
            disk=nodes.disk_bytes_per_second * 1e-9,
            written_bytes_per_event=nodes.accepted * description.readout.event_bytes,
            control_ns=to_ns(nodes.control_seconds),
            back_ends=nodes.back_ends,
        )


def _padded(n_bytes: float) -> int:
    return max(PADDING, -(-round(n_bytes) // PADDING) * PADDING)


def policy_of(config: NodeConfig, name: ConsumerOutput) -> SlowConsumerPolicy:
    """The slow consumer policy of an output of a node."""
    if name is ConsumerOutput.DECISIONS:
        return config.decisions.policy
    return config.events.policy if name is ConsumerOutput.EVENTS else SlowConsumerPolicy.DROP_NEW
