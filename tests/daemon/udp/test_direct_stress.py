"""Random times, commands and refusals while receiving threads decide: each event is decided and counted once."""

from __future__ import annotations

import asyncio
import ctypes
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq

from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node import core
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.storage.histogram_files import HistogramFiles
from hltnode.daemon.storage.root_file import load_library
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from tests.daemon.fakes import eventually, node_of_engine
from tests.daemon.udp.direct_batch import COMPUTE, Functions
from tests.daemon.udp.direct_experiment import LINES, PACKETS, SECONDS, SHORT, Experiment, config_of
from tests.daemon.udp.packets import EVENTS, RUN

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

RUNS = RUN, RUN + 1, RUN + 2
MEPS = 40
"""MEPs of a run."""
AHEAD = 3
"""Most MEPs that are sent before their decisions are seen."""
LONGEST_SECONDS = 3e-3
"""Three times as long as the event loop waits for a direct computation."""


class SlowBatch:
    """The compiled batch of a workspace, whose computations last a random time."""

    def __init__(self, batch: object, address: int, rng: random.Random) -> None:
        self._batch, self._rng = batch, rng
        of = Functions.from_address(address)
        self._compiled = of.compute
        self._functions = Functions(of.self, of.input, of.input_bytes, of.write_tables, COMPUTE(self._compute))
        self.address = ctypes.addressof(self._functions)

    def _compute(self, of: int) -> None:
        # The results may be there before or after the event loop stops waiting.
        time.sleep(self._rng.choice((0.0, self._rng.random() * LONGEST_SECONDS)))
        self._compiled(of)
        time.sleep(self._rng.choice((0.0, self._rng.random() * LONGEST_SECONDS)))


def sometimes_refused(rng: random.Random, send: Callable[..., bool]) -> Callable[..., bool]:
    """As for a subscriber that does not take some messages."""
    return lambda *arguments: rng.random() > 0.2 and send(*arguments)


def pause_and_resume(control: BuilderControl) -> None:
    control.pause()
    control.resume()


def disturb(it: Experiment, node: Node, rng: random.Random) -> None:
    """Something that may happen at any time, and refuses nothing."""
    acts: tuple[Callable[[], object], ...] = (
        node.builder.before_refusals,
        it.receiver.read,
        it.receiver.schedule,
        lambda: node.builder_control.feeder_spoke(time.monotonic_ns()),
        lambda: pause_and_resume(node.builder_control),
        lambda: time.sleep(rng.random() * LONGEST_SECONDS),
        node._core.tally.since_start,
    )
    rng.choice(acts)()


async def decisions_of_run(it: Experiment, rng: random.Random, burst: int, run: int) -> list[MepDecision]:
    """Send the MEPs of a run in random steps, some of their datagrams twice."""
    decisions = list[MepDecision]()
    sent, end = 0, time.monotonic() + SECONDS
    while len(decisions) < MEPS:
        assert time.monotonic() < end
        if sent < MEPS and sent - len(decisions) < AHEAD and rng.random() < 0.7:
            it.send(sent, run=run, burst=burst, ends_run=sent == MEPS - 1)
            sent += 1
            if rng.random() < 0.2 and sent < MEPS:
                it.send(rng.randrange(sent), run=run, burst=burst)
        disturb(it, it.node, rng)
        await asyncio.sleep(rng.choice((0.0, 0.0, rng.random() * LONGEST_SECONDS)))
        while it._subscriber.poll(0):
            decisions.append(decode_decision(it._subscriber.recv()))
    return decisions


async def outcome(
    config: NodeConfig, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[tuple[int, int], list[bool]], list[list[int]], int]:
    """Accepted events by run and first event, histograms by run, and the number of direct decisions."""
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    engine = CHAIN.create_engine(backend, {}, TriggerConfig.from_toml(LINES, CHAIN.menu), batch_limits(config))
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with node_of_engine(config, engine, backend.name) as node:
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            it = Experiment(node, None, subscriber, [])
            await it.subscribed()
            early = node._path._early
            assert early is not None
            monkeypatch.setattr(early, "leave_directly", sometimes_refused(rng, early.leave_directly))
            decisions = list[MepDecision]()
            for i, run in enumerate(RUNS):
                decisions += await decisions_of_run(it, rng, 1 + i, run)
                await eventually(lambda: node.builder_control.registry.current is None)
            counters = node.counters
            await eventually(lambda: counters.meps_acknowledged == len(decisions))
            assert it.take(0.1) is None
            assert [(each.run, each.mep) for each in decisions] == [(run, mep) for run in RUNS for mep in range(MEPS)]
            assert [each.seq for each in decisions] == list(range(len(decisions)))
            assert counters.events_processed == len(decisions) * PACKETS * EVENTS
            assert counters.decisions.sent == len(decisions)
            histograms = [[n for each in node._core.tally.of_run(run) or () for n in each.counts] for run in RUNS]
            n_direct = counters.decisions_directly
    assert closes(accounting(node.counters, node.builder))
    # MEPs of two sockets may be joined in another order.
    accepted = {(each.run, each.first_event): each.accepted_events().tolist() for each in decisions}
    assert len(accepted) == len(decisions)
    return accepted, histograms, n_direct


@pytest.mark.parametrize("seed", range(2))
async def test_each_event_is_decided_and_counted_once_at_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    load_library()
    monkeypatch.setattr(SHORT, SECONDS)
    # It may come to the end of a run after the next one has begun.
    monkeypatch.setattr(HistogramFiles, "finish", lambda *_: None)
    rng, compiled = random.Random(seed), Workspace.compiled_batch

    def slow(workspace: Workspace) -> SlowBatch:
        batch = compiled.fget(workspace)  # type: ignore[attr-defined]
        return SlowBatch(batch, batch.address, rng)

    found = []
    for is_direct in (True, False):
        (folder := tmp_path / str(is_direct)).mkdir()
        config = config_of(folder, trigger={"chain": "raw"}, udp={"sockets": 1 + seed % 2})
        monkeypatch.setattr(Workspace, "compiled_batch", property(slow))
        if not is_direct:
            monkeypatch.setattr(core, "decides_directly", lambda *_: False)
        found.append(await outcome(config, rng, monkeypatch))
    (*results, n_direct), (*expected, n_usual) = found
    assert results == expected
    assert 0 < n_direct < len(RUNS) * MEPS
    assert n_usual == 0
