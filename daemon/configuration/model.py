"""The configuration of a node: one TOML file, overridden by `HLTNODE_SECTION__KEY` in the environment.

The sections are in `node_sections`, `input_sections` and `output_sections`; this module has their order and the rules
between them.
"""

from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.configuration.input_sections import (
    BuilderSection,
    LimitsSection,
    NetworkSection,
    RequestsSection,
    ShadowSection,
    SharedMemorySection,
    StreamingSection,
    TapSection,
    UdpSection,
    packet_address,
)
from hltnode.daemon.configuration.node_sections import (
    ConditionsSection,
    GeometrySection,
    HttpSection,
    LatencySection,
    LogSection,
    NodeSection,
    PipelineSection,
    SecuritySection,
    TriggerSection,
)
from hltnode.daemon.configuration.output_sections import (
    CombinerSection,
    DecisionsSection,
    ErrorsSection,
    EventsSection,
    HistogramsSection,
    MonitorSection,
    OutputSection,
)

ENV_PREFIX = "HLTNODE_"
ENV_DELIMITER = "__"


def variable_of(section: str, key: str) -> str:
    """The environment variable that overrides a key."""
    return f"{ENV_PREFIX}{section}{ENV_DELIMITER}{key}".upper()


class NodeConfig(BaseSettings):
    """All settings of a node at its start. Immutable; unknown keys are errors."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_DELIMITER,
        case_sensitive=False,
        frozen=True,
        extra="forbid",
    )

    node: NodeSection = Field(default_factory=NodeSection)
    network: NetworkSection = Field(default_factory=NetworkSection)
    shared_memory: SharedMemorySection = Field(default_factory=SharedMemorySection)
    udp: UdpSection = Field(default_factory=UdpSection)
    limits: LimitsSection = Field(default_factory=LimitsSection)
    builder: BuilderSection = Field(default_factory=BuilderSection)
    streaming: StreamingSection = Field(default_factory=StreamingSection)
    pipeline: PipelineSection = Field(default_factory=PipelineSection)
    latency: LatencySection = Field(default_factory=LatencySection)
    geometry: GeometrySection = Field(default_factory=GeometrySection)
    conditions: ConditionsSection = Field(default_factory=ConditionsSection)
    trigger: TriggerSection = Field(default_factory=TriggerSection)
    output: OutputSection = Field(default_factory=OutputSection)
    decisions: DecisionsSection = Field(default_factory=DecisionsSection)
    combiner: CombinerSection = Field(default_factory=CombinerSection)
    events: EventsSection = Field(default_factory=EventsSection)
    errors: ErrorsSection = Field(default_factory=ErrorsSection)
    monitor: MonitorSection = Field(default_factory=MonitorSection)
    requests: RequestsSection = Field(default_factory=RequestsSection)
    tap: TapSection = Field(default_factory=TapSection)
    shadow: ShadowSection = Field(default_factory=ShadowSection)
    histograms: HistogramsSection = Field(default_factory=HistogramsSection)
    http: HttpSection = Field(default_factory=HttpSection)
    security: SecuritySection = Field(default_factory=SecuritySection)
    log: LogSection = Field(default_factory=LogSection)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment overrides the file, whose values are the keyword arguments."""
        return env_settings, init_settings

    @property
    def n_sockets(self) -> int:
        """Number of sockets to which peers connect, without HTTP."""
        return len(self.endpoints())

    def endpoints(self) -> dict[str, str]:
        """The endpoints that the node binds, by key."""
        found = {f"network.{key}": str(getattr(self.network, key)) for key in ("data", "control", "decisions")}
        for section in ("events", "errors", "monitor", "requests", "tap"):
            endpoint = getattr(self, section).endpoint
            if endpoint is not None:
                found[f"{section}.endpoint"] = endpoint
        if self.tap.meps_endpoint is not None:
            found["tap.meps_endpoint"] = self.tap.meps_endpoint
        return found

    @model_validator(mode="after")
    def _sections_fit(self) -> Self:
        """Raises ValueError with one line per problem."""
        problems = [
            *self._sizes(),
            *self._conditions(),
            *self._feeders(),
            *self._latency(),
            *self._combiner(),
            *self._udp(),
            *self._keys(),
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _sizes(self) -> Iterator[str]:
        if self.network.max_frame_bytes > self.builder.max_mep_bytes:
            yield "network.max_frame_bytes: expected at most builder.max_mep_bytes: an MFP is part of a MEP"
        if self.builder.max_mep_bytes > self.pipeline.slot_bytes:
            yield "builder.max_mep_bytes: expected at most pipeline.slot_bytes: a slot holds whole MEPs"
        if self.shadow.of is not None and self.shadow.of in self.endpoints().values():
            yield "shadow.of: expected the tap of another node, not an endpoint of this one"
        if self.decisions.meps_per_message > 1 and self.decisions.lists:
            yield "decisions.meps_per_message: expected 1 with decisions.lists: a message of several MEPs has no lists"
        if self.requests.max_bytes > self.requests.queue_bytes:
            yield "requests.queue_bytes: expected at least requests.max_bytes"
        keys: dict[str, str] = {}
        for key, endpoint in self.endpoints().items():
            if not _is_wildcard(endpoint) and (first := keys.setdefault(endpoint, key)) != key:
                yield f"{key}: expected an endpoint different from {first}, not {endpoint!r}"

    def _conditions(self) -> Iterator[str]:
        if self.conditions.folder is not None and self.trigger.follow_conditions:
            yield "trigger.follow_conditions: expected false with conditions.folder, which sets the beam of each run"

    def _feeders(self) -> Iterator[str]:
        if self.builder.min_feeders > self.builder.max_feeders:
            yield "builder.max_feeders: expected at least builder.min_feeders"
        if self.builder.min_feeders > self.limits.connections:
            yield "limits.connections: expected at least builder.min_feeders: each feeder connects to every socket"
        unfinished = self.limits.unfinished_bytes
        if unfinished is not None and unfinished < self.network.max_frame_bytes:
            yield "limits.unfinished_bytes: expected at least network.max_frame_bytes"

    def _latency(self) -> Iterator[str]:
        if self.latency.decisions_first and EventStream.ACCEPTED in self.output.streams:
            yield (
                'latency.decisions_first: expected output.streams without "accepted": a decision that is sent before '
                "its event is in a file would promise an event that a kill can lose"
            )

    def _combiner(self) -> Iterator[str]:
        combiner = self.combiner
        if (combiner.server_key is None) != (combiner.key_file is None):
            yield "combiner.server_key: expected together with combiner.key_file"
        if combiner.endpoint is None:
            return
        if self.security.server_key is not None and combiner.server_key is None and _is_remote(combiner.endpoint):
            yield (
                "combiner.server_key: expected with security.server_key and a combiner on another machine: without it "
                "seeds are sent in clear to any program at combiner.endpoint"
            )
        if self.latency.decisions_first:
            yield "latency.decisions_first: expected false with combiner.endpoint, which decides on windows"
        if self.shadow.of is not None:
            yield "combiner.endpoint: expected unset with shadow.of: seeds of a shadow would count twice"

    def _udp(self) -> Iterator[str]:
        udp = self.udp
        if udp.endpoint is None:
            return
        if not udp.senders:
            yield "udp.senders: expected with udp.endpoint: without it every datagram is refused"
        if len({packet_address(sender.address) for sender in udp.senders}) < len(udp.senders):
            yield "udp.senders: expected each address once"
        for sender in udp.senders:
            if not udp.is_reached_from(sender.address):
                yield (
                    f"udp.senders: {sender.address} cannot send to {udp.endpoint}: expected both IPv4 or both IPv6; "
                    "sockets of udp://[::]:PORT take both"
                )
        for key in ("max_events", "max_events_per_mep"):
            # 0: the node computes the limit.
            if 0 < getattr(self.pipeline, key) < udp.events_per_mep:
                yield f"udp.packets_per_mep: expected at most pipeline.{key} events per MEP, with udp.events_per_packet"
        if self.builder.min_feeders > 1:
            yield "builder.min_feeders: expected 1 with udp.endpoint: the node itself numbers the MEPs of datagrams"
        if others := set(self.builder.expected_sources or ()) - set(udp.sources):
            yield (
                f"builder.expected_sources: expected only sources of udp.senders with udp.endpoint, not "
                f"{min(others)}: the MEPs of datagrams have no fragments of other feeders"
            )
        joined = udp.packets_per_mep * udp.max_datagram_bytes
        if joined > self.network.max_frame_bytes:
            yield "udp.packets_per_mep: expected packets of at most network.max_frame_bytes together"
        if joined * len(udp.sources) > self.builder.max_mep_bytes:
            yield "udp.packets_per_mep: expected the packets of all sources to have at most builder.max_mep_bytes"

    def _keys(self) -> Iterator[str]:
        security = self.security
        if (self.shadow.server_key is None) != (self.shadow.key_file is None):
            yield "shadow.server_key: expected together with shadow.key_file"
        if security.server_key is not None and security.feeders is None and self.shadow.of is None:
            yield "security.feeders: expected with security.server_key: without it no feeder can connect"
        need_one = [key for key in ("feeders", "operators", "consumers", "encrypt_data") if getattr(security, key)]
        if security.server_key is None and need_one:
            yield f"security.server_key: expected with {' and '.join(f'security.{key}' for key in need_one)}"


def _is_remote(endpoint: str) -> bool:
    """True for a TCP endpoint that is not on the loopback."""
    if not endpoint.startswith("tcp://"):
        return False
    host = endpoint.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    return host != "localhost" and not Peer(host, "").is_local


def _is_wildcard(endpoint: str) -> bool:
    return endpoint.startswith("tcp://") and endpoint.rpartition(":")[2] in ("*", "0")
