"""From the raw banks of an event to its scene, through the sequence of a chain.

Nothing is drawn that the sequence does not make: one of the VELO alone gives a scene of the VELO alone.
"""

from collections.abc import Sequence

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.lhcb.offline.display.reconstructed_objects import DRAWN_COLUMNS, ReconstructedObjects
from hltnode.processing.lhcb.offline.display.scene import Scene
from hltnode.processing.lhcb.offline.display.true_objects import true_collisions, true_particles
from hltnode.processing.offline.shown_event import accepting_lines, run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=1, meps=1, input_bytes=2 << 20, rows=8192)
"""One event; the densest ones of proton collisions have a quarter of these bytes."""


class EventReader:
    """Reconstructs single events.

    Args:
        trigger: chooses the sequence. run_lines: whether its lines are run too, so that scenes say which accepted.

    Raises:
        TriggerConfigError: the configuration does not fit the chain.
        BackendError: memory is short.
    """

    def __init__(
        self, chain: TriggerChain, backend: Backend, geometry: Constants, trigger: TriggerConfig, *, run_lines: bool
    ) -> None:
        chain = chain.with_sequence(trigger.sequence)
        retain = tuple(column.name for column in DRAWN_COLUMNS if column in chain.sequence.columns)
        self._engine = (
            chain.create_engine(backend, geometry, trigger, LIMITS, retain=retain)
            if run_lines
            else Engine(backend, chain, chain.with_conditions(geometry, trigger), LIMITS, retain=retain)
        )
        self._runs_lines = run_lines
        self._runner = OfflineRunner(self._engine, workspaces=1)
        self._geometry = geometry

    def close(self) -> None:
        """Stop the back end."""
        self._engine.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> Scene:
        """The scene of an event.

        Raises:
            ProtocolError: banks cannot be read, those of the truth included.
            ValueError: the event is larger than the largest that is drawn.
            BackendError: the back end has failed.
        """
        mep = encode_mep(self._engine.chain, [banks], encoding=encoding)
        (batch,) = self._runner.run([mep])
        found = ReconstructedObjects(batch.workspace, self._geometry)
        run, event = run_and_event(banks)
        return Scene(
            run=run,
            event=event,
            lines=accepting_lines(self._engine.lines, batch.workspace.output.lines[0]) if self._runs_lines else None,
            flags=tuple(self._engine.flags.names(int(batch.workspace.host_array(event_flags.name)[0]))),
            hits=found.hits,
            tracks=found.tracks,
            vertices=found.vertices,
            decays=found.decays,
            particles=true_particles(banks, found),
            collisions=true_collisions(banks),
            cells=found.cells,
            clusters=found.clusters,
            downstream_v0s=found.downstream_v0s,
            stubs=found.stubs,
        )
