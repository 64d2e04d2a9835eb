"""Batch systems process the files of a list: the scripts run as Slurm and HTCondor run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.tool_command import tool_of
from hltnode.processing.offline.chain_tools import SampleRequest, installed_tools
from hltnode.protocol.raw_data.mdf import iter_records
from tests.deploy.tools import DEPLOY

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

BATCH = DEPLOY / "batch"
TASK = BATCH / "process-task.sh"
SBATCH = """#!/bin/sh
# Runs the tasks of an array here, one after the other, and notes its own arguments.
printf '%s\\n' "$@" > "$FAKE_SBATCH/arguments"
cpus=1
while [ $# -gt 0 ]; do
    case "$1" in
        --array=*) range=${1#--array=} ;;
        --cpus-per-task=*) cpus=${1#*=} ;;
        --export=ALL,*) export "${1#--export=ALL,}" ;;
        --*) ;;
        *) break ;;
    esac
    shift
done
range=${range%\\%*}
code=0
for i in $(seq "${range%-*}" "${range#*-}"); do
    SLURM_ARRAY_TASK_ID=$i SLURM_CPUS_PER_TASK=$cpus "$@" > "$FAKE_SBATCH/task-$i" 2>&1 || code=1
done
exit $code
"""
EVENTS = 30
TRIGGER = """
[[lines]]
type = "Passthrough"
name = "All"
"""
PROGRAM = f"{sys.executable} -m hltnode.daemon"
STAND_IN = """#!/bin/sh
# `hltnode process FILE ...` that accepts all events, without the seconds in which Python starts.
file=$2
[ -e "$file" ] || exit 2
shift 2
while [ $# -gt 0 ]; do
    case "$1" in
        --accepted) cp "$file" "$2" ;;
        --threads) threads=$2 ;;
        --chain) chain=$2 ;;
        --json) json=$2 ;;
    esac
    shift
done
printf '{"threads": %s, "chain": "%s"}' "$threads" "$chain" > "$json"
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    path = tmp_path / "stand-in"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files, two of which have the same name, and a name with a blank."""
    found = []
    for seed, name in ((1, "a/run.mdf"), (2, "b/run.mdf"), (3, "b/other run.mdf")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        tool = tool_of(installed_tools("raw"), "raw", "simulation")
        made = tool.sample(SampleRequest(seed=seed), tool.options()).blocks(EVENTS, 1)
        path.write_bytes(b"".join(block for _, block in made))
        found.append(path)
    (tmp_path / "list").write_text("".join(f"{path}\n\n" for path in found))
    return found


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    fake = tmp_path / "bin"
    fake.mkdir(exist_ok=True)
    (fake / "sbatch").write_text(SBATCH)
    (fake / "sbatch").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "HLTNODE_T"))}
    paths = {"PATH": f"{fake}:{os.environ['PATH']}", "FAKE_SBATCH": str(fake), "TMPDIR": str(tmp_path)}
    return {**kept, **paths, "HLTNODE": PROGRAM, **more}


def submit(tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    trigger = tmp_path / "trigger.toml"
    trigger.write_text(TRIGGER)
    command = [str(BATCH / "submit-slurm.sh"), str(tmp_path / "list"), str(tmp_path / "out")]
    return subprocess.run(
        [*command, "--chain", "raw", "--trigger", str(trigger)],
        env=environment(tmp_path, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


def test_an_array_of_slurm_gives_the_events_of_one_process_and_continues_where_it_ended(
    files: list[Path], stand_in: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = submit(tmp_path, TASKS="2", CPUS="1")
    assert done.returncode == 0, done.stderr
    names = ["000000-run.mdf", "000001-run.mdf", "000002-other run.mdf"]
    assert sorted(path.name for path in out.glob("*.json")) == [f"{name}.json" for name in names]
    arguments = (tmp_path / "bin" / "arguments").read_text().splitlines()
    assert {"--array=0-1%100", "--cpus-per-task=1", "--export=ALL,HLTNODE_TASKS=2"} <= set(arguments)
    # The events and results of one process.
    whole = tmp_path / "whole.mdf"
    one = ["process", *map(str, files), "--chain", "raw", "--trigger", str(tmp_path / "trigger.toml")]
    assert CliRunner().invoke(app, [*one, "--threads", "1", "--accepted", str(whole)]).exit_code == 0
    assert len(list(iter_records(whole.read_bytes()))) == EVENTS * len(files)
    assert b"".join((out / f"{name}.mdf").read_bytes() for name in names) == whole.read_bytes()
    # Nothing is left behind, and a second submission processes what is missing.
    assert not [*out.glob("*.part"), *tmp_path.glob("hltnode-task-*")]
    (out / f"{names[1]}.json").unlink()
    times = {name: (out / f"{name}.json").stat().st_mtime_ns for name in (names[0], names[2])}
    assert submit(tmp_path, TASKS="3", CPUS="1", HLTNODE=stand_in).returncode == 0
    assert (out / f"{names[1]}.json").exists()
    assert {name: (out / f"{name}.json").stat().st_mtime_ns for name in times} == times


def test_a_file_that_cannot_be_processed_fails_its_task_alone(files: list[Path], stand_in: str, tmp_path: Path) -> None:
    files[0].unlink()
    done = submit(tmp_path, TASKS="1", CPUS="1", HLTNODE=stand_in)
    assert done.returncode == 1
    assert f"{files[0]}: not processed, exit code 2" in (tmp_path / "bin" / "task-0").read_text()
    assert len(list((tmp_path / "out").glob("*.json"))) == 2


@pytest.mark.parametrize("task", ["2", "-1", "two"])
def test_a_task_outside_of_the_array_does_not_end_as_if_all_were_done(task: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("a.mdf\n")
    env = environment(tmp_path, HLTNODE="/bin/false", HLTNODE_TASK=task, HLTNODE_TASKS="2")
    done = subprocess.run(
        [str(TASK), str(tmp_path / "list"), str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, f"task {task} of 2: expected a number from 0" in done.stderr) == (2, True)


def test_a_list_without_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("\n\n")
    done = submit(tmp_path)
    assert (done.returncode, "expected the path of an event file" in done.stderr) == (2, True)


def test_a_task_that_gets_sigterm_ends_its_process_and_removes_its_folder(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("a.mdf\n")
    (tmp_path / "out").mkdir()
    slow = tmp_path / "slow"
    # It ends some time after the signal: the folder goes behind it.
    slow.write_text(
        f"#!/bin/sh\ntrap 'sleep 0.3; touch {tmp_path}/ended; exit 143' TERM\necho $$ > {tmp_path}/pid\n"
        "while :; do sleep 0.05; done\n"
    )
    slow.chmod(0o755)
    env = environment(tmp_path, HLTNODE=str(slow), HLTNODE_TASK="0", HLTNODE_TASKS="1")
    task = subprocess.Popen([TASK, tmp_path / "list", tmp_path / "out"], env=env)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert task.poll() is None
        time.sleep(0.05)
    task.send_signal(signal.SIGTERM)
    assert task.wait(60) == 143
    assert not list(tmp_path.glob("hltnode-task-*"))
    assert (tmp_path / "ended").exists()


def test_a_task_that_ends_while_it_copies_leaves_no_part_of_a_file(
    files: list[Path], stand_in: str, tmp_path: Path
) -> None:
    env = environment(tmp_path, HLTNODE=stand_in, HLTNODE_TASK="0", HLTNODE_TASKS="1")
    # A copy that writes half of the file and then tells the task to end.
    copy = tmp_path / "bin" / "cp"
    copy.write_text(
        '#!/bin/sh\ncase "$2" in *.part) head -c 100 "$1" > "$2"; kill -TERM $PPID ;; *) exec /bin/cp "$@" ;; esac\n'
    )
    copy.chmod(0o755)
    (tmp_path / "out").mkdir()
    command = [str(TASK), str(tmp_path / "list"), str(tmp_path / "out"), "--chain", "raw"]
    assert subprocess.run(command, env=env, check=False, timeout=60).returncode == 143
    assert not list((tmp_path / "out").iterdir())
    assert not list(tmp_path.glob("hltnode-task-*"))


def test_the_submit_file_of_htcondor_gives_each_task_its_number(
    files: list[Path], stand_in: str, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    settings = {"list": str(tmp_path / "list"), "folder": str(tmp_path / "out"), "tasks": "2", "options": "--chain raw"}
    lines = (BATCH / "process.sub").read_text().splitlines()
    keys = dict(line.split(" = ", 1) for line in lines if " = " in line and not line.startswith("#"))
    assert lines[-1] == "queue $(tasks)"
    for number in range(int(settings["tasks"])):
        known = {**settings, "Process": str(number), "cpus": "1"}

        def expanded(key: str, known: dict[str, str] = known) -> str:
            return re.sub(
                r"\$\((\w+)(?::([^)]*))?\)", lambda found: known.get(found[1], found[2] or ""), keys[key]
            ).strip('"')

        of_task = dict(each.split("=", 1) for each in expanded("environment").split())
        assert of_task == {"HLTNODE_TASK": str(number), "HLTNODE_TASKS": "2", "HLTNODE_THREADS": "1"}
        command = [str(BATCH / keys["executable"]), *shlex.split(expanded("arguments"))]
        subprocess.run(command, env=environment(tmp_path, HLTNODE=stand_in, **of_task), check=True, timeout=60)
    assert len(list((tmp_path / "out").glob("*.json"))) == len(files)
    for path in (tmp_path / "out").glob("*.json"):
        assert json.loads(path.read_text()) == {"threads": 1, "chain": "raw"}


@pytest.mark.parametrize("name", ["process-task.sh", "submit-slurm.sh"])
def test_the_scripts_are_valid_for_the_shell_of_debian(name: str) -> None:
    checked = subprocess.run(["sh", "-n", BATCH / name], capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode == 0, checked.stderr
    assert os.access(BATCH / name, os.X_OK)
