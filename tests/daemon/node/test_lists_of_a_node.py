"""A node of the chain `ccl` delivers the components of its images in accepted events and in decisions."""

from __future__ import annotations

import json
from asyncio import to_thread
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq
import zmq.asyncio
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.daemon.node.sizing import batch_limits, names_of_lists
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.strips import encode_image
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_banks
from hltnode.protocol.transport.decisions import decode_decision
from tests.daemon.fakes import RUN, eventually, make_config, make_feeder, node_of_engine

pytestmark = pytest.mark.loopback

N_EVENTS, EVENTS_PER_MEP = 48, 8
VALUES = ("area", "left", "top", "right", "bottom")
TRIGGER = '[[lines]]\ntype = "ComponentCount"\nname = "Many"\nmin_components = 12\n'


def write_images(path: Path) -> None:
    """Images of 20 x 33 pixels, from empty to half full."""
    rng = np.random.default_rng(3)
    with path.open("wb") as file:
        for number in range(N_EVENTS):
            image = rng.random((20, 33)) < 0.5 * number / N_EVENTS
            file.write(encode_record(encode_banks(encode_image(image, 5)), run=RUN, checksum=False))


def process(path: Path, trigger: Path) -> list[dict[str, Any]]:
    result = path.with_suffix(".json")
    arguments = ["process", str(path), "--chain", "ccl", "--trigger", str(trigger), "--backend", "cpu"]
    done = CliRunner().invoke(app, [*arguments, "--json", str(result), "--force"])
    assert done.exit_code == 0, done.output
    events: list[dict[str, Any]] = json.loads(result.read_text())["per_event"]
    return events


@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_files_and_decisions_have_the_lists_that_process_computes(tmp_path: Path) -> None:
    images, trigger_file = tmp_path / "images.mdf", tmp_path / "trigger.toml"
    write_images(images)
    trigger_file.write_text(TRIGGER)
    expected = await to_thread(process, images, trigger_file)
    packing = Packing(events_per_mep=EVENTS_PER_MEP, max_fragment_bytes=1 << 20, run=RUN)
    stream = meps_of_files([images], CHAIN.readout, packing)
    config = make_config(
        tmp_path,
        trigger={"chain": "ccl"},
        output={"lists": ("features",)},
        decisions={"lists": ("features",), "max_list_bytes": 8192},
    )
    backend = create_backend("cpu", CHAIN.kernels, threads=2)
    trigger = CHAIN.load_trigger(trigger_file)
    engine = CHAIN.create_engine(backend, {}, trigger, batch_limits(config), with_lists=names_of_lists(config))
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with (
            node_of_engine(config, engine, backend.name) as node,
            make_feeder(context, node, sources=stream.sources, events=EVENTS_PER_MEP, chain="ccl") as feeder,
        ):
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers > 0)
            report = await feed_meps(stream, [feeder])
            decisions = [decode_decision(await subscriber.recv()) for _ in range(N_EVENTS // EVENTS_PER_MEP)]
            left_out = node.counters.lists_left_out
    assert report.complete

    full = 0
    for decision in decisions:
        lists = decision.output_lists()["features"]
        events = expected[decision.mep * EVENTS_PER_MEP :][:EVENTS_PER_MEP]
        size = sum(20 * len(event["area"]) for event in events)
        if lists is None:
            full += 1
            assert size > 7000
            continue
        assert size <= 8192
        for i, event in enumerate(events):
            assert {name: lists.of_event(i)[name].tolist() for name in VALUES} == {name: event[name] for name in VALUES}
    assert 0 < full == left_out < len(decisions)

    accepted = [event for event in expected if event["accepted"]]
    assert 10 < len(accepted) < N_EVENTS
    [file] = (tmp_path / "out").glob("*accepted*.mdf")
    as_text = sorted(json.dumps({name: event[name] for name in VALUES}) for event in accepted)
    written = [event.lists["features"] for event in hltnode.open(file, chain="ccl")]
    assert sorted(json.dumps({name: values[name].tolist() for name in VALUES}) for values in written) == as_text
    # The lists of the file are no input: they are computed again.
    again = await to_thread(process, file, trigger_file)
    assert sorted(json.dumps({name: event[name] for name in VALUES}) for event in again) == as_text
    shown = await to_thread(CliRunner().invoke, app, ["inspect", str(file), "--chain", "ccl", "--json", "-"])
    assert "OUTPUT_LIST_0" in shown.output


def test_a_list_that_the_chain_does_not_have_is_named_at_the_start(tmp_path: Path) -> None:
    for key in ("output", "decisions"):
        config = tmp_path / f"{key}.toml"
        text = f'[trigger]\nchain = "ccl"\n[{key}]\nlists = ["tracks"]\n'
        config.write_text(f'{text}{"" if key == "output" else "[output]"}\ndirectory = "{tmp_path}/out"\n')
        done = CliRunner().invoke(app, ["serve", "--config", str(config)])
        assert done.exit_code == 2
        message = f"{config}: {key}.lists: chain ccl has no list 'tracks'; there are features"
        assert message in " ".join(done.stderr.split())
