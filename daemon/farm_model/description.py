"""The description of a farm: a TOML file, checked, or an error that names the wrong key."""

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hltnode.client.feeder import HELLO_SECONDS, SILENT_HELLOS
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.configuration.node_sections import TriggerSection
from hltnode.processing.framework.near_names import expected_one_of

MAX_NODES = 10_000
MAX_FAULTS = 1000
MAX_CONSUMERS = 64
MAX_SECONDS = 86_400.0
MAX_STOP_SECONDS = SILENT_HELLOS * HELLO_SECONDS
"""A feeder gives up a node after this time without an answer."""

Bytes = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]


class FarmError(ValueError):
    """A description or a measurement that cannot be used; the message names the key and the number."""


class Arrivals(StrEnum):
    """The times between MEPs of the sources."""

    REGULAR = "regular"
    POISSON = "poisson"


class Policy(StrEnum):
    """The assignment of MEPs to nodes: `credits` is that of the supervisor, the others are for comparison."""

    CREDITS = "credits"
    ROUND_ROBIN = "round_robin"
    LEAST_LOADED = "least_loaded"


class ConsumerOutput(StrEnum):
    """What a consumer reads."""

    DECISIONS = "decisions"
    EVENTS = "events"
    MONITORING = "monitoring"


class FaultKind(StrEnum):
    """What happens to nodes, see `FaultSection`."""

    KILL = "kill"
    DRAIN = "drain"
    SLOW = "slow"
    FULL_DISK = "full_disk"
    STOP = "stop"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ReadoutSection(_Section):
    """The sources and their buffers."""

    sources: int = Field(ge=0, le=65_535)
    """Number of readout sources; each sends one fragment of every MEP."""
    events_per_second: Rate
    """Rate of events at the start."""
    event_bytes: Bytes
    """Mean size of an event, all fragments together."""
    events_per_mep: int = Field(ge=1, le=65_535)
    """Events of a MEP."""
    arrivals: Arrivals = Arrivals.REGULAR
    """regular: a MEP after every `events_per_mep` events of a machine with a clock; poisson: random triggers."""
    source_bytes_per_second: Rate = 1e15
    """Rate of the link of one source."""
    buffer_bytes: Bytes = 1e18
    """Memory of all sources together for MEPs that no node has a credit for; MEPs above it are lost."""
    straggler_share: float = Field(default=0.0, ge=0, le=1)
    """Part of the MEPs whose last fragment is late by `straggler_seconds`."""
    straggler_seconds: Seconds = 0.0
    """Delay of the last fragment of these MEPs."""
    lifetime_seconds: Seconds = 0.0
    """Time in which the rate falls to 1/e, for the decay of the luminosity; 0: a constant rate."""


class BurstSection(_Section):
    """Times with a higher rate."""

    every_seconds: float = Field(gt=0, le=MAX_SECONDS)
    """Time from the start of a burst to the start of the next one."""
    seconds: float = Field(gt=0, le=MAX_SECONDS)
    """Duration of a burst."""
    factor: float = Field(ge=1, le=1000)
    """Rate in a burst, as a multiple of the rate without."""


class NetworkSection(_Section):
    """What MEPs share on their way from the sources to the nodes."""

    switch_bytes_per_second: Rate = 1e15
    """Rate of the switch between sources and nodes, all ports together."""
    nodes_of_rack: int = Field(default=0, ge=0, le=MAX_NODES)
    """Nodes that share the link of their rack, counted from node 0; 0: each has a link of its own."""
    rack_bytes_per_second: Rate = 1e15
    """Rate of the link into a rack."""


class NodesSection(_Section):
    """The nodes."""

    count: int = Field(ge=1, le=MAX_NODES)
    """Number of nodes."""
    back_ends: int = Field(default=1, ge=1, le=64)
    """GPUs of a machine, or other back ends, that compute batches at the same time."""
    link_bytes_per_second: Rate = 1e15
    """Rate of the link into a node."""
    disk_bytes_per_second: Rate = 1e15
    """Rate at which a node writes accepted events."""
    accepted: float = Field(default=1 / 30, ge=0, le=1)
    """Part of the events that is written."""
    control_seconds: Seconds = 100e-6
    """Time of a message or a frame on its way: credits, acknowledgements, the first byte of a fragment."""
    watts: float = Field(default=0.0, ge=0, le=1e6)
    """Power of a node with its back ends; 0: not known."""
    cost: float = Field(default=0.0, ge=0, le=1e12)
    """Cost of a node in any unit; 0: not known."""


class ServiceSection(_Section):
    """The time that a back end needs for a batch: a measurement, or numbers."""

    measurement: str | None = None
    """File of `hltnode farm measure`; a relative path starts at the folder of the description."""
    chain: str = TriggerSection().chain
    """Chain of the measurement."""
    occupancy: str = "all"
    """Events of the measurement: all, or the third of the smallest (low), middle or largest (high) ones."""
    events_per_second: float = Field(default=0.0, ge=0, le=1e15, allow_inf_nan=False)
    """Without a measurement: rate of one back end with large batches."""
    overhead_seconds: Seconds = 0.0
    """Without a measurement: time of a batch beside that of its events."""
    spread: float = Field(default=0.0, ge=0, le=10)
    """Without a measurement: relative standard deviation of the time of a batch (a gamma distribution)."""
    speed: float = Field(default=1.0, gt=0, le=1e6)
    """Factor on the speed that was measured or given, for a machine that is slower or faster."""

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.measurement is None) == (self.events_per_second == 0.0):
            raise ValueError("expected one of measurement and events_per_second")
        return self


class SupervisorSection(_Section):
    """The assignment of MEPs to nodes."""

    policy: Policy = Policy.CREDITS
    """credits is the policy of the supervisor; round_robin and least_loaded are for comparison."""


class ConsumerSection(_Section):
    """A program that reads one output of all nodes. Policies and queues are those of the nodes, in `[node]`."""

    output: ConsumerOutput
    """decisions: a message for each MEP; events: one for each accepted event; monitoring: the sample of the node."""
    messages_per_second: Rate
    """Rate at which it takes messages."""
    bytes_per_second: Rate = 1e15
    """Rate of its link."""
    pause_at_seconds: Seconds = 0.0
    """Time at which it stops to read."""
    pause_seconds: Seconds = 0.0
    """Time for which it does not read."""


class FaultSection(_Section):
    """Something that happens to some nodes.

    kill: the nodes lose everything in memory, and return after `seconds`. drain: they grant no credits, finish, and are
    away for `seconds` then; several nodes are drained one after the other. slow: their back ends need `factor` times as
    long. full_disk: nothing is written. stop: the process stands still, and continues after `seconds`; feeders give up
    a node that is silent for longer than MAX_STOP_SECONDS, so a longer stop is a kill.
    """

    kind: FaultKind
    at_seconds: Seconds
    """Time of the start of the fault."""
    seconds: Seconds
    """Its duration."""
    nodes: tuple[int, int]
    """First and last node, counted from 0."""
    factor: float = Field(default=1.0, ge=1, le=1000)
    """Factor on the time of a batch, for slow."""


class FarmDescription(_Section):
    """A farm and its load."""

    seconds: float = Field(default=10.0, gt=0, le=MAX_SECONDS)
    """Time with beam; then the farm is emptied."""
    seed: int = Field(default=1, ge=0, lt=1 << 63)
    """Seed of all random numbers."""
    readout: ReadoutSection
    burst: BurstSection | None = None
    network: NetworkSection = NetworkSection()
    nodes: NodesSection
    service: ServiceSection
    supervisor: SupervisorSection = SupervisorSection()
    faults: tuple[FaultSection, ...] = Field(default=(), max_length=MAX_FAULTS)
    consumers: tuple[ConsumerSection, ...] = Field(default=(), max_length=MAX_CONSUMERS)
    node: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Sections of the configuration of the nodes, as in node.toml: pipeline, builder, output, decisions, events."""

    @property
    def mep_bytes(self) -> int:
        """Bytes of a MEP."""
        return max(1, round(self.readout.events_per_mep * self.readout.event_bytes))

    @property
    def meps_per_second(self) -> float:
        """Rate of MEPs at the start, without bursts."""
        return self.readout.events_per_second / self.readout.events_per_mep

    def node_config(self) -> NodeConfig:
        """The configuration of a node. The environment is not read. Raises FarmError."""
        try:
            return _FileOnly.model_validate(self.node)
        except ValidationError as error:
            raise FarmError(_text_of(error, "node.")) from error

    def with_value(self, key: str, value: Any) -> "FarmDescription":
        """A copy with another value of a key such as `nodes.count`. Raises FarmError."""
        values = self.model_dump(mode="json")
        *path, last = key.split(".")
        at: Any = values
        for name in path:
            if isinstance(at, dict) and at.get(name) is None:
                at[name] = {}
            at = at.get(name) if isinstance(at, dict) else None
        if not isinstance(at, dict):
            raise FarmError(f"{key}: expected SECTION.KEY of the description, such as nodes.count")
        at[last] = value
        return parse_description(values, "")


class _FileOnly(NodeConfig):
    """The configuration without the environment: a result depends on its description alone."""

    @classmethod
    def settings_customise_sources(cls, settings_cls: Any, init_settings: Any, *_: Any, **__: Any) -> Any:  # noqa: ARG003
        return (init_settings,)


def parse_description(values: Mapping[str, Any], name: str) -> FarmDescription:
    """The description in a table of TOML; `name` begins the lines of errors. Raises FarmError."""
    begin = f"{name}: " if name else ""
    try:
        description = FarmDescription.model_validate(dict(values))
    except ValidationError as error:
        raise FarmError(_text_of(error, begin)) from error
    description.node_config()
    for i, fault in enumerate(description.faults):
        first, last = fault.nodes
        if not 0 <= first <= last < description.nodes.count:
            raise FarmError(
                f"{begin}faults.{i}.nodes: expected first and last of the nodes 0 to {description.nodes.count - 1}, "
                f"not {first} and {last}"
            )
        if fault.kind is FaultKind.STOP and fault.seconds > MAX_STOP_SECONDS:
            raise FarmError(
                f"{begin}faults.{i}.seconds: feeders give up a node that is stopped for {fault.seconds:g} s: expected "
                f"at most {MAX_STOP_SECONDS:g}, or kind kill"
            )
    return description


def load_description(path: Path) -> FarmDescription:
    """Read a description. The path of its measurement becomes absolute. Raises FarmError."""
    try:
        values = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise FarmError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FarmError(f"{path}: not a TOML file: {error}") from error
    description = parse_description(values, str(path))
    if description.service.measurement is not None:
        place = str(path.parent.absolute() / description.service.measurement)
        return description.with_value("service.measurement", place)
    return description


def _text_of(error: ValidationError, begin: str) -> str:
    """One line for each problem."""
    lines = []
    for item in error.errors(include_url=False):
        place = [str(each) for each in item["loc"]]
        text = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            model: Any = FarmDescription if not begin.endswith("node.") else NodeConfig
            for name in place[:-1]:
                annotation = model.model_fields[name].annotation if name in getattr(model, "model_fields", {}) else None
                model = annotation if isinstance(annotation, type) else None
            known = getattr(model, "model_fields", {})
            text = f"unknown key{expected_one_of(place[-1], known) if known else ''}"
        lines.append(f"{begin}{'.'.join(place)}: {text}" if place else f"{begin}{text}")
    return "\n".join(lines)
