"""`hltnode replay` of several runs, as processes: each run once, whatever is killed and started again."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.odin import decode_odin
from tests.daemon.processes.test_processes import Site, site
from tests.daemon.replay.test_run_split import mep, record

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]

EVENTS = 8
RUNS = (5, 6)
IN_RUN = 160
RATE = 80
"""Events per second: two seconds for a run, so that a replay is killed within the second one."""
# The fake engine accepts every second event of a MEP.
WANTED = {run: [n for n in range(IN_RUN) if n % EVENTS % 2] for run in RUNS}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "hltnode"


@pytest.fixture
def two_runs(site: Site) -> Site:
    site.input = site.directory / "runs.mdf"
    site.input.write_bytes(b"".join(record(run, n) for n in range(IN_RUN) for run in RUNS))
    return site


def replay(site: Site, *options: str, name: str = "report") -> subprocess.Popen[bytes]:
    return site.start(
        "hltnode.daemon", "replay", str(site.input), "--to", site.data, "--control", site.control,
        "--events-per-mep", str(EVENTS), "--json", str(site.directory / f"{name}.json"), *options,
    )  # fmt: skip


def report_of(site: Site, name: str = "report") -> dict[str, Any]:
    report: dict[str, Any] = json.loads((site.directory / f"{name}.json").read_text())
    return report


def results(site: Site, name: str = "report") -> list[tuple[int, str]]:
    return [(run["run"], run["result"]) for run in report_of(site, name)["runs"]]


def stored(*sites: Site) -> dict[int, list[int | None]]:
    """The numbers of the events of each run in all files; None for an event without ODIN.

    On a busy machine a killed feeder comes back too late, and the node builds its open MEPs without it.
    """
    events: dict[int, list[int | None]] = {}
    for each in sites:
        for path in sorted(each.output.glob("*.mdf")):
            of_run = int(path.name.split("_")[2])
            for event in iter_records(path.read_bytes()):
                odins = [decode_odin(bank) for bank in event.banks() if bank.type == BankType.ODIN]
                assert {odin.run for odin in odins} <= {of_run}
                events.setdefault(of_run, []).append(odins[0].event_id if odins else None)
    return events


def kept(*sites: Site) -> dict[int, list[int]]:
    """The same, sorted, of events that all have ODIN."""
    return {run: sorted(n for n in numbers if n is not None) for run, numbers in stored(*sites).items()}


def assert_each_once(*sites: Site) -> None:
    """Nothing is doubled and nothing lost."""
    found = stored(*sites)
    assert found.keys() == WANTED.keys()
    for run, numbers in kept(*sites).items():
        assert len(found[run]) == len(WANTED[run])
        assert len(numbers) == len(set(numbers))
        assert set(numbers) <= set(WANTED[run])


def stop(site: Site) -> None:
    node = next(process for process in reversed(site.processes) if "node_process" in str(process.args))
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()


def ends(site: Site) -> Counter[tuple[int, str]]:
    """(run, how it ended) of all summaries."""
    summaries = [json.loads(path.read_text()) for path in site.output.glob("*summary*.json")]
    return Counter((summary["run"], summary["ended"]) for summary in summaries)


def packed(order: Sequence[int]) -> bytes:
    """MEPs of the runs in this order, each run with consecutive events."""
    content, numbers = b"", Counter[int]()
    for run in order:
        content += mep(run, range(numbers[run], numbers[run] + EVENTS))
        numbers[run] += EVENTS
    return content


@pytest.mark.parametrize(
    "kind", [pytest.param("consecutive.mdf", marks=pytest.mark.slow), "interleaved.mdf", "runs.mep"]
)
def test_each_run_of_an_input_becomes_a_run_of_the_node(site: Site, state: Path, kind: str) -> None:
    site.input = site.directory / kind
    contents = {
        "consecutive.mdf": lambda: b"".join(record(run, n) for run in RUNS for n in range(IN_RUN)),
        "interleaved.mdf": lambda: b"".join(record(run, n) for n in range(IN_RUN) for run in RUNS),
        "runs.mep": lambda: packed(RUNS * (IN_RUN // EVENTS)),
    }
    site.input.write_bytes(contents[kind]())
    site.start_node()
    assert site.wait(replay(site)) == 0, site.logs()
    stop(site)
    assert kept(site) == WANTED
    assert ends(site) == {(5, "confirmed"): 1, (6, "confirmed"): 1}
    report = report_of(site)
    assert results(site) == [(5, "sent"), (6, "sent")]
    assert [run["events"] for run in report["runs"]] == [IN_RUN, IN_RUN]
    assert report["events"] == 2 * IN_RUN
    printed = site.logs()
    assert "run 5:" in printed
    assert "run 6:" in printed
    assert not list(state.iterdir()), "the record of finished runs is deleted at the end"


def test_a_replay_that_is_killed_in_the_second_run_continues_there(two_runs: Site, state: Path) -> None:
    site = two_runs
    site.start_node()
    killed = replay(site, "--rate", str(RATE))
    site.wait_for_events(IN_RUN + 24)
    killed.kill()
    killed.wait()
    assert [path.name.startswith("replay-runs-") for path in state.iterdir()] == [True]
    assert site.wait(replay(site, name="again")) == 0, site.logs()
    stop(site)
    assert results(site, "again") == [(5, "stored_before"), (6, "sent")]
    assert report_of(site, "again")["earlier"] > 0
    assert kept(site) == WANTED
    assert "run 5 is not sent: a replay that was interrupted stored it" in " ".join(site.logs().split())
    assert not list(state.iterdir())


@pytest.mark.slow
def test_a_replay_that_is_killed_in_the_first_run_sends_the_rest_of_both(two_runs: Site) -> None:
    site = two_runs
    site.start_node()
    killed = replay(site, "--rate", str(RATE))
    site.wait_for_events(40)
    killed.kill()
    killed.wait()
    assert site.wait(replay(site, name="again")) == 0, site.logs()
    stop(site)
    assert results(site, "again") == [(5, "sent"), (6, "sent")]
    assert kept(site) == WANTED


def test_a_run_that_the_node_refuses_ends_the_replay_and_is_sent_when_it_is_started_again(
    two_runs: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = two_runs
    monkeypatch.setenv("HLTNODE_NODE__RUN", "5")
    site.start_node()
    assert site.wait(replay(site)) == 1, site.logs()
    assert results(site) == [(5, "sent"), (6, "sent")]
    assert "accepts run 5, not 6" in report_of(site)["runs"][1]["error"]
    assert not report_of(site)["runs"][1]["complete"]
    stop(site)
    monkeypatch.setenv("HLTNODE_NODE__RUN", "0")
    site.start_node()
    assert site.wait(replay(site, name="again")) == 0, site.logs()
    stop(site)
    assert results(site, "again") == [(5, "stored_before"), (6, "sent")]
    assert kept(site) == WANTED


def test_a_refused_first_run_leaves_the_others_unsent_and_the_exit_code_is_1(
    two_runs: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = two_runs
    monkeypatch.setenv("HLTNODE_NODE__RUN", "6")
    site.start_node()
    assert site.wait(replay(site)) == 1, site.logs()
    assert results(site) == [(5, "sent"), (6, "not_sent")]
    assert "run 6: not sent" in site.logs()


def test_a_signal_ends_all_runs(two_runs: Site) -> None:
    site = two_runs
    site.start_node()
    feeder = replay(site, "--rate", str(RATE))
    site.wait_for_events(40)
    feeder.send_signal(signal.SIGTERM)
    assert site.wait(feeder) == 143, site.logs()
    assert results(site) == [(5, "sent"), (6, "not_sent")]


def test_a_finished_replay_can_be_repeated(two_runs: Site) -> None:
    """As with one run: a run that is over may be fed again."""
    site = two_runs
    site.start_node()
    for name in ("first", "second"):
        assert site.wait(replay(site, name=name)) == 0, site.logs()
        assert results(site, name) == [(5, "sent"), (6, "sent")]
    stop(site)
    assert kept(site) == {run: sorted(numbers * 2) for run, numbers in WANTED.items()}


def test_an_endless_replay_of_several_runs_is_refused(two_runs: Site) -> None:
    site = two_runs
    site.start_node()
    assert site.wait(replay(site, "--loop")) == 2
    assert "--loop: the input has events of 2 runs" in " ".join(site.logs().split())


@pytest.mark.slow
def test_jobs_go_through_the_runs_together(two_runs: Site, state: Path) -> None:
    site = two_runs
    site.start_node()
    killed = replay(site, "--jobs", "2", "--rate", str(RATE))
    site.wait_for_events(IN_RUN + 24)
    # Also the jobs, which end with the pipe to their parent.
    killed.kill()
    killed.wait()
    assert site.wait(replay(site, "--jobs", "2", name="again")) == 0, site.logs()
    stop(site)
    assert results(site, "again") == [(5, "stored_before"), (6, "sent")]
    assert kept(site) == WANTED
    assert not list(state.iterdir())


@pytest.mark.parametrize("site", [2], indirect=True)
@pytest.mark.parametrize("killed_at", [pytest.param(40, marks=pytest.mark.slow), IN_RUN + 24])
def test_of_two_feeders_one_is_killed_and_started_again_and_no_event_is_doubled(
    two_runs: Site, state: Path, killed_at: int
) -> None:
    site = two_runs
    site.start_node()
    one, two = (replay(site, "--part", f"{part}/2", "--rate", str(RATE), name=f"part{part}") for part in (1, 2))
    site.wait_for_events(killed_at)
    two.kill()
    two.wait()
    two = replay(site, "--part", "2/2", "--rate", str(RATE), name="part2")
    for number, feeder in enumerate((one, two), 1):
        # On a busy machine the node does not wait long enough for the second process, and says so.
        late = site.wait(feeder) == 1 and report_of(site, f"part{number}")["refused"].keys() == {"late"}
        assert late or feeder.returncode == 0, site.logs()
    stop(site)
    assert_each_once(site)
    assert results(site, "part1") == [(5, "sent"), (6, "sent")]
    assert results(site, "part2")[0] == (5, "sent" if killed_at < IN_RUN else "stored_before")
    assert not list(state.iterdir())


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, Site]]:
    monkeypatch.setenv("HLTNODE_BUILDER__MEP_TIMEOUT_MS", "5000")
    for name in "ab":
        (tmp_path / name).mkdir()
    pair = Site(tmp_path / "a", 2), Site(tmp_path / "b", 2)
    pair[0].input = tmp_path / "runs.mdf"
    pair[0].input.write_bytes(b"".join(record(run, n) for n in range(IN_RUN) for run in RUNS))
    yield pair
    for each in pair:
        for process in each.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1], ids=["supervisor", "follower"])
def test_two_feeders_of_two_nodes_follow_each_run_and_survive_a_kill_in_the_second(
    sites: tuple[Site, Site], state: Path, killed: int
) -> None:
    a, b = sites
    for each in sites:
        each.start_node()
    supervisor = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    options = ("--to", b.data, "--control", b.control, "--supervisor", supervisor, "--rate", str(RATE))

    def part(number: int) -> subprocess.Popen[bytes]:
        return replay(a, *options, "--part", f"{number}/2", name=f"part{number}")

    def processed() -> int:
        pages = [each.status() for each in sites]
        return sum(0 if page is None else page["events"]["processed"] for page in pages)

    feeders = [part(1), part(2)]
    a.wait_for(lambda: processed() >= IN_RUN + 24)
    feeders[killed].kill()
    feeders[killed].wait()
    feeders[killed] = part(killed + 1)
    for number, feeder in enumerate(feeders, 1):
        late = a.wait(feeder) == 1 and report_of(a, f"part{number}")["refused"].keys() == {"late"}
        assert late or feeder.returncode == 0, a.logs() + b.logs()
    assert results(a, f"part{killed + 1}") == [(5, "stored_before"), (6, "sent")]
    for each in sites:
        stop(each)
    assert_each_once(a, b)
    if all(feeder.returncode == 0 for feeder in feeders):
        assert not list(state.iterdir())
