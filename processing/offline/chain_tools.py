"""The tools that a chain may offer beside its trigger: simulation, validation, display and others.

An installed package offers them under an entry point group of their own, so that a node, which loads the chain alone,
never imports a simulation. Commands load the one tool that they need and pass it the options that every chain
understands; options of one detector are fields of the tool's `options`, a dataclass whose fields are annotated as typer
expects (`Annotated[int, typer.Option("--name", help=...)]`) and have defaults.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.channel_groups import ChannelGroups
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.entry_points import find_entry_point, load_entry_point
from hltnode.processing.framework.memory_plan import Retain
from hltnode.processing.framework.offline_runner import CompletedBatch
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.offline.sample_cache import NamedSample
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.row_choice import RowChoice
from hltnode.processing.selection.studies.scans import Scan
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain, installed_chain
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.raw_bank import RawBank

TOOLS_ENTRY_POINTS = "hltnode.chain_tools"
"""The group of entry points under which installed packages offer the tools of their chains, by the chain's name."""

DEFAULT_RUN = 1
"""The run number of simulated events where none is asked for."""

FileFormat = Literal["mdf", "mep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """A tool without options of its own."""


NO_OPTIONS = NoOptions()
Results = Sequence[tuple[str, dict[str, Any]]]
"""The JSON object of each sample or configuration, with its name."""

Options = TypeVar("Options")
Summary = TypeVar("Summary", bound="SampleSummary")
Picture = TypeVar("Picture", bound="EventPicture")
Read = TypeVar("Read", bound="EventPicture", covariant=True)
Parameters = TypeVar("Parameters", bound="ChainParameters", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """The simulated events that every chain understands. geometry: a folder of files, built-in if None."""

    seed: int
    run: int = DEFAULT_RUN
    geometry: Path | None = None
    file_format: FileFormat = "mdf"


class SimulatedSample(Protocol):
    """Simulated events, numbered from 0. The same request and options give the same events."""

    @property
    def name(self) -> str:
        """A short name for files."""

    @property
    def identity(self) -> dict[str, Any]:
        """All that the events depend on: options, contents of files, the code of the simulation."""

    @property
    def description(self) -> dict[str, Any]:
        """The options of the chain's own, for the JSON object of `hltnode simulate`."""

    def blocks(self, n: int, jobs: int) -> Generator[tuple[int, bytes]]:
        """Number of events and encoded bytes of each block of the first n events, in order, made by several processes.

        The number of processes changes no byte. Raises ValueError for a sample that cannot be simulated.
        """

    def events(self, n: int) -> Iterator[list[RawBank]]:
        """Raw banks of the first n events, made by this process. Raises as `blocks` does."""


class Simulation(Protocol[Options]):
    """Events with truth, written as genuine raw banks."""

    @property
    def options(self) -> type[Options]:
        """The chain's own options; their defaults are used where no command line gives them."""

    @property
    def named_samples(self) -> Mapping[str, NamedSample]:
        """The samples that users may ask for by name."""

    def sample(self, request: SampleRequest, options: Options) -> SimulatedSample:
        """The sample of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSample:
    """A sample that was compared with its truth.

    text: the tables for the terminal. result: the JSON object. error: why the numbers are worthless, empty if they are
    not. remark: what limits them.
    """

    text: str
    result: Callable[[], dict[str, Any]]
    error: str = ""
    remark: str = ""


class TruthCheck(Protocol):
    """Compares the events of one sample with their truth, batch by batch."""

    @property
    def retained(self) -> Retain:
        """The columns that are read after a batch."""

    @property
    def encoding(self) -> str:
        """The encoding of the readout that is read."""

    @property
    def events_seen(self) -> int:
        """Number of events so far."""

    def events(self, path: Path) -> Iterable[Sequence[RawBank]]:
        """Raw banks of the events of a file. Raises EventFileError and ValueError, which name the file."""

    def add(self, batch: CompletedBatch) -> None:
        """Compare a batch."""

    def finish(self, rows: RowChoice) -> CheckedSample:
        """The numbers of all batches; the text has the chosen rows only.

        Raises ValueError where an option of the user was never of use.
        """


class Validation(Protocol[Options]):
    """Efficiencies of the reconstruction against Monte Carlo truth."""

    @property
    def options(self) -> type[Options]:
        """The chain's own options."""

    def reads(self, options: Options) -> tuple[Path | None, ...]:
        """The files that the options name, which must not be overwritten."""

    def check(self, sequence: AlgorithmSequence, geometry: Path | None, options: Options) -> TruthCheck:
        """A check of what a sequence reconstructs. Raises ValueError, which names the file or option."""

    def read_result(self, path: Path) -> dict[str, Any]:
        """An earlier JSON object. Raises ValueError, which names the file."""

    def page(self, results: Results, text: str) -> str:
        """One or several results as one HTML file; `text` are the tables."""


class SampleSummary(Protocol):
    """Distributions over the events of a sample."""

    events: int

    def add_event(self, banks: Sequence[RawBank]) -> None:
        """Count an event. Raises ProtocolError for banks that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSamples:
    """The likeness of two samples. text: the tables for the terminal; result: the JSON object; page: the HTML file."""

    text: str
    result: dict[str, Any]
    page: str


class Comparison(Protocol[Summary]):
    """How alike two samples are in banks, hits and truth."""

    def summaries(self, geometry: Path | None) -> tuple[Summary, Summary]:
        """Two empty summaries. Raises ValueError, which names the file of the geometry."""

    def event_name(self, banks: Sequence[RawBank]) -> str:
        """An event, for errors."""

    def compare(self, files: tuple[Path, Path], samples: tuple[Summary, Summary], rows: RowChoice) -> ComparedSamples:
        """The likeness of the second sample to the first one; the text has the chosen rows only."""


class EventPicture(Protocol):
    """An event as it can be drawn."""

    @property
    def title(self) -> str:
        """Run and event number."""

    @property
    def summary(self) -> str:
        """The numbers of the objects that were found, divided by commas and semicolons."""

    @property
    def lines(self) -> tuple[str, ...] | None:
        """The lines that accept the event, None where none was run."""


class PictureReader(Protocol[Read]):
    """Reconstructs single events to be drawn."""

    def read(self, banks: Sequence[RawBank], encoding: str) -> Read:
        """An event. Raises ProtocolError, ValueError and BackendError."""

    def close(self) -> None:
        """Stop the back end."""


class Display(Protocol[Picture]):
    """Pictures of single events."""

    @property
    def options(self) -> type[Any]:
        """The chain's own options."""

    def run_and_event(self, banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
        """Run and event number of an event, None where they cannot be read."""

    def reader(
        self, chain: TriggerChain, geometry: Path | None, trigger: TriggerConfig, own: Any = ...
    ) -> PictureReader[Picture]:
        """What reconstructs events with a trigger configuration and options. Raises ValueError and BackendError."""

    def page(self, picture: Picture, source: str, n_lines: int) -> str:
        """An interactive HTML file. source: the file and place of the event; n_lines: the number of lines that ran."""

    def png(self, picture: Picture, source: str) -> bytes:
        """A still picture. Needs matplotlib."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEfficiencies:
    """The JSON object of a configuration. remark: which events were left out, and why."""

    result: dict[str, Any]
    remark: str = ""


class Efficiency(Protocol[Options]):
    """Efficiencies of lines on simulated signal."""

    @property
    def options(self) -> type[Options]:
        """The chain's own options."""

    def encoding(self, options: Options) -> str:
        """The encoding of the readout that is read."""

    def retained(self, sequence: AlgorithmSequence) -> Sequence[str]:
        """The columns that are read after a batch."""

    def measure(
        self,
        deciding: DecidingPass,
        events: Iterable[EventTable | Sequence[RawBank]],
        lines: Sequence[Line],
        scans: Sequence[Scan],
        progress: Callable[[int], None],
    ) -> MeasuredEfficiencies:
        """Efficiencies of the lines of a configuration and of its scans. Raises ValueError where no event has truth."""

    def text(self, results: Results) -> str:
        """The tables for the terminal."""

    def page(self, results: Results, text: str) -> str:
        """One HTML file. Needs matplotlib."""


class ChainParameters(Protocol):
    """Parameters that algorithms of a chain read from a file."""

    @property
    def accuracy(self) -> str:
        """How well they describe the detector."""

    def as_json(self) -> str:
        """The content of the file."""

    def differences(self, other: Any) -> Sequence[str]:
        """The names of the values in which other parameters differ."""


class Parametrisation(Protocol[Options, Parameters]):
    """Parameters that are computed from geometry, field and material of the detector."""

    @property
    def options(self) -> type[Options]:
        """The chain's own options."""

    @property
    def file_name(self) -> str:
        """The name of the file in a folder of geometry."""

    def load(self, folder: Path) -> Parameters:
        """The parameters of a folder. Raises ValueError, which names the file."""

    def compute(self, geometry: Path | None, options: Options) -> Parameters:
        """The parameters of a detector. Raises ValueError, which names the file that cannot be read."""


class Channels(Protocol):
    """Counts hits by groups of channels, which the conditions may mask."""

    def columns(self, sequence: AlgorithmSequence) -> Sequence[str]:
        """The columns that `count` fetches, of the detectors that a sequence reads."""

    def groups(self, constants: Constants) -> Sequence[ChannelGroups]:
        """The groups of channels of a detector."""

    def count(self, groups: ChannelGroups, constants: Constants, workspace: Workspace) -> NDArray[np.int64]:
        """The hits of a batch in each group, i64[n]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRate:
    """The rate of a simulated stream. option: the field of the simulation's options. unit: of the rate."""

    option: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTools:
    """The tools of one chain, None where it has none. Each is made when it is asked for: a command that needs one does
    not import the others."""

    simulation: Callable[[], Simulation[Any]] | None = None
    validation: Callable[[], Validation[Any]] | None = None
    comparison: Callable[[], Comparison[Any]] | None = None
    display: Callable[[], Display[Any]] | None = None
    efficiency: Callable[[], Efficiency[Any]] | None = None
    parametrisation: Callable[[], Parametrisation[Any, Any]] | None = None
    channels: Callable[[], Channels] | None = None
    stream_rate: StreamRate | None = None
    """The rate that `hltnode stream` sets, of a chain without a trigger signal."""
    sends_datagrams: bool = False
    """The boards of the detector send UDP datagrams; `hltnode demo` then uses UDP."""


def installed_tools(chain: str) -> ChainTools:
    """The tools of an installed chain; none where its package offers none.

    Raises ValueError: there is no such chain, two packages offer its tools, or they cannot be loaded.
    """
    point = find_entry_point(TOOLS_ENTRY_POINTS, chain, "set of tools")
    if point is None:
        installed_chain(chain)
        return ChainTools()
    tools = load_entry_point(point, "chain")
    if not isinstance(tools, ChainTools):
        raise ValueError(f"chain {chain!r}: {point.value} is no ChainTools")
    return tools
