"""The section [streaming] of a configuration, checked against the chain of a node."""

from pathlib import Path

from hltnode.daemon.common.vocabulary import HeadRoomRule
from hltnode.daemon.configuration.loading import errors_of
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.processing.framework.streaming import clock_offset_constants
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain


def streaming_constants(
    config: NodeConfig, config_file: Path | None, chain: TriggerChain, trigger: TriggerConfig
) -> Constants:
    """The constants of the chain that the section sets, which replace those of the geometry.

    Raises ConfigError for keys that the chain cannot follow.
    """
    section, streaming = config.streaming, chain.with_lines(trigger).streaming
    with errors_of(config_file, "streaming.head_room"):
        if section.head_room is not HeadRoomRule.KEEP and streaming is None:
            raise ValueError(f"expected keep: chain {chain.name} has no time slices, and every event counts")
    with errors_of(config_file, "streaming.clock_offsets_ns"):
        return clock_offset_constants(chain.name, streaming, section.clock_offsets_ns or {})
