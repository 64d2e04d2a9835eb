"""A node of the whole of LHCb's HLT1 that clients ask: the answers are those of `hltnode.process`."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import hltnode
from hltnode.client import Answer
from hltnode.daemon.commands.demo_processes import free_ports
from tests.daemon.pages import status_page

pytestmark = [pytest.mark.process, pytest.mark.loopback]

ROOT = Path(__file__).resolve().parents[3]
CLIENTS = 7
LINES = """
from hltnode.processing.lhcb.lines import *
lines = [
    Line("Hlt1Track", long_tracks, lambda t: t.pt > 2 * GeV),
    Line("Hlt1Pair", two_track_vertices, lambda v: (v.chi2 < 10) & (v.min_pt > 500 * MeV)),
    Line("Hlt1Crowded", event, lambda e: e.n_long_tracks > 60),
]
"""
FLOOD = """
import sys, hltnode
while True:
    for answer in hltnode.ask(sys.argv[1], sys.argv[2], events_per_request=3):
        print(len(answer.flags), flush=True)
"""


def test_seven_clients_get_the_decisions_of_the_library_while_an_eighth_is_killed(tmp_path: Path, shared: Path) -> None:
    events = shared / "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    (tmp_path / "lines.py").write_text(LINES)
    trigger = tmp_path / "trigger.toml"
    trigger.write_text('line_files = ["lines.py"]\nlines = []\n[sequence]\nname = "forward_then_matching"\n')
    data, control, decisions, http, asked = free_ports(5)
    config = tmp_path / "node.toml"
    config.write_text(
        f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
max_frame_bytes = 65536
[builder]
max_mep_bytes = 65536
[pipeline]
backend = "cpu"
slot_bytes = 524288
max_events = 16
[requests]
endpoint = "tcp://127.0.0.1:{asked}"
max_events = 16
[trigger]
file = "{trigger}"
[output]
directory = "{tmp_path / "out"}"
[http]
port = {http}
"""
    )
    node = subprocess.Popen([sys.executable, "-m", "hltnode.daemon", "serve", "--config", str(config)], cwd=ROOT)
    address = f"tcp://127.0.0.1:{asked}"
    killed = None
    try:
        end = time.monotonic() + 120
        while status_page(http) is None:
            assert node.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        killed = subprocess.Popen(
            [sys.executable, "-c", FLOOD, str(events), address], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert killed.stdout is not None
        assert killed.stdout.readline().strip()

        def ask(n: int) -> list[Answer]:
            return list(hltnode.ask(events, address, events_per_request=n, timeout=120.0))

        with ThreadPoolExecutor(CLIENTS) as pool:
            asking = pool.map(ask, range(1, CLIENTS + 1))
            time.sleep(0.2)
            killed.send_signal(signal.SIGKILL)
            answers = list(asking)
        expected = hltnode.process(events, ["decisions.*", "event.n_*"], trigger=trigger, backend="cpu")
        names = [name for name in expected.decisions.fields if name.startswith("Hlt1")]
        for of_client, n in zip(answers, range(1, CLIENTS + 1), strict=True):
            assert [each.n_events for each in of_client] == [min(n, 7 - first) for first in range(0, 7, n)]
            fired = np.concatenate([each.fired() for each in of_client])
            assert fired.shape[1] == len(names)
            for column, name in enumerate(names):
                assert fired[:, column].tolist() == expected.decisions[name].tolist(), name
            accepted = np.concatenate([each.accepted_events() for each in of_client])
            assert accepted.tolist() == expected.decisions.accepted.tolist()
            for name, count in (("long_tracks", expected.event.n_long_tracks), ("pvs", expected.event.n_pvs)):
                assert np.concatenate([each.counted()[name] for each in of_client]).tolist() == count.tolist()
            assert 0 < accepted.sum() < 7
        assert {f"0x{each.tck:08X}" for of_client in answers for each in of_client} == {expected.attrs["tck"]}
        status = status_page(http)
        assert status is not None
        assert status["events"]["processed"] == 0, json.dumps(status)
        node.send_signal(signal.SIGTERM)
        assert node.wait(30) == 0
    finally:
        for process in (node, killed):
            if process is not None:
                process.kill()
                process.wait()
        if killed is not None and killed.stdout is not None:
            killed.stdout.close()
