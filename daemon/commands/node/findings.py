"""Checks of `hltnode doctor` and `hltnode config check`: one finding per check, with advice."""

import ctypes
import os
import resource
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hltnode.client.keys import load_key_pair
from hltnode.daemon.commands.node.streaming_options import streaming_constants
from hltnode.daemon.configuration.loading import ConfigError, errors_of, load_config
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.security.access_control import read_lists
from hltnode.daemon.security.descriptors import PER_CONNECTION, RESERVE
from hltnode.daemon.storage.directory_lock import check_directory
from hltnode.processing.framework.backends import cuda_installation
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.trigger_chain import installed_chain

GIB = 1 << 30
SPACE_FOR_FILES = 10
"""Number of files of output.max_file_bytes for which the disk should have space."""
SOMAXCONN = 1024
RMEM_MAX = 4 << 20
"""Bytes in flight on a connection of 10 Gbit/s with a round trip of 3 ms."""
UNSYNCHRONISED = 5
"""TIME_ERROR: the state of an unsynchronised clock (adjtimex(2))."""
CLOCK_ERROR_US = 100_000


class Level(StrEnum):
    """Severity of a finding."""

    OK = "OK"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: the checked item, the result, and advice unless the result is OK."""

    what: str
    level: Level
    found: str
    mend: str = ""


def configuration_problems(file: Path | None) -> list[str]:
    """One line per problem of a configuration and of its files; empty if a node can start with it.

    Without a file, the configuration of the environment.
    """
    try:
        config = load_config(file)
    except ConfigError as error:
        return str(error).splitlines()
    return list(_problems_of_files(config, file))


def _problems_of_files(config: NodeConfig, file: Path | None) -> Iterator[str]:
    try:
        with errors_of(file, "trigger.chain"):
            chain = installed_chain(config.trigger.chain)
        with errors_of(file, "trigger.file", config.trigger.file):
            trigger = chain.load_trigger(config.trigger.file)
        for key, names in (("output.lists", config.output.lists), ("decisions.lists", config.decisions.lists)):
            with errors_of(file, key):
                chain.with_sequence(trigger.sequence).check_lists(names)
    except ConfigError as error:
        yield str(error)
        return
    try:
        streaming_constants(config, file, chain, trigger)
    except ConfigError as error:
        yield str(error)
    try:
        with errors_of(file, "geometry.directory", config.geometry.directory):
            chain.with_sequence(trigger.sequence).load_geometry(config.geometry.directory)
    except ConfigError as error:
        yield str(error)
    if (folder := config.conditions.folder) is not None:
        try:
            with errors_of(file, "conditions.folder", folder):
                ConditionsFolder.load(folder, chain.name, chain.conditions)
        except ConfigError as error:
            yield str(error)
    try:
        with errors_of(file, "output.directory", config.output.directory.parent):
            check_directory(config.output.directory)
    except ConfigError as error:
        yield str(error)
    security = config.security
    try:
        with errors_of(file, "security"):
            read_lists(security)
            if security.server_key is not None:
                load_key_pair(security.server_key)
    except ConfigError as error:
        yield str(error)


def examine(config: NodeConfig) -> Iterator[Finding]:
    """All findings on this machine for a node with this configuration."""
    yield _gpu(config)
    yield _pinned_memory(config)
    yield from _sockets(config)
    yield from _ports(config)
    yield _clock()
    yield from _output(config)


def _gpu(config: NodeConfig) -> Finding:
    wanted = config.pipeline.backend.value
    if wanted == "cpu":
        return Finding("GPU", Level.OK, "not used (pipeline.backend = cpu): the CPU computes")
    try:
        if not cuda_installation.is_available():
            if wanted == "auto":
                return Finding("GPU", Level.OK, "CuPy, a driver or a device is missing: the CPU computes")
            found = "CuPy, a driver or a device is missing"
            return Finding("GPU", Level.PROBLEM, found, "pip install 'hltnode[cuda13]', or pipeline.backend = \"auto\"")
        device, architecture = cuda_installation.checked_device(config.pipeline.device)
    except BackendError as error:
        return Finding("GPU", Level.PROBLEM, str(error), 'correct this, or set pipeline.backend = "cpu"')
    return Finding("GPU", Level.OK, f"device {device.ordinal}, sm_{architecture}")


def _pinned_memory(config: NodeConfig) -> Finding:
    needed = config.pipeline.slots * config.pipeline.slot_bytes
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit == resource.RLIM_INFINITY or limit >= needed:
        found = "unlimited" if limit == resource.RLIM_INFINITY else f"{limit} bytes"
        return Finding("pinned memory", Level.OK, found)
    is_cpu = config.pipeline.backend.value == "cpu" or not cuda_installation.is_available()
    found = f"{limit} bytes may be locked, the slots need {needed}"
    if is_cpu:
        return Finding("pinned memory", Level.OK, f"{found}; the CPU needs none")
    return Finding("pinned memory", Level.WARNING, found, "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited")


def _sockets(config: NodeConfig) -> Iterator[Finding]:
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = PER_CONNECTION * config.n_sockets * config.limits.connections + RESERVE
    if files == resource.RLIM_INFINITY or files >= needed:
        yield Finding("open files", Level.OK, f"{files}")
    else:
        yield Finding(
            "open files",
            Level.WARNING,
            f"{files}, limits.connections needs {needed}",
            "LimitNOFILE= in the unit or ulimit -Hn, or lower limits.connections",
        )
    for what, path, least in (
        ("net.core.somaxconn", "/proc/sys/net/core/somaxconn", SOMAXCONN),
        ("net.core.rmem_max", "/proc/sys/net/core/rmem_max", RMEM_MAX),
    ):
        try:
            value = int(Path(path).read_text())
        except OSError as error:
            yield Finding(what, Level.WARNING, f"cannot be read: {error.strerror}", "check it outside the container")
            continue
        if value >= least:
            yield Finding(what, Level.OK, f"{value}")
        else:
            yield Finding(what, Level.WARNING, f"{value}, expected {least}", f"sysctl -w {what}={least}")


def _ports(config: NodeConfig) -> Iterator[Finding]:
    endpoints = {**config.endpoints(), "http.port": f"tcp://{config.http.host}:{config.http.port}"}
    for key, endpoint in endpoints.items():
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        if not endpoint.startswith("tcp://") or port in ("*", "0"):
            yield Finding(key, Level.OK, f"{endpoint}")
            continue
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("" if host == "*" else host.strip("[]"), int(port)))
            except OSError as error:
                mend = f"end the process that uses it (ss -ltnp 'sport = :{port}'), or set {key}"
                yield Finding(key, Level.PROBLEM, f"{endpoint}: {error.strerror}", mend)
            else:
                yield Finding(key, Level.OK, f"{endpoint} is free")


def _clock() -> Finding:
    """The clock matters because times of fragments and events come from several machines."""
    # struct timex is 208 bytes on 64-bit Linux; modes = 0 reads. maxerror (µs) is its fourth word.
    buffer = (ctypes.c_long * 26)()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    if state < 0:
        return Finding("clock", Level.WARNING, f"cannot be read: {os.strerror(ctypes.get_errno())}", "timedatectl")
    error_us = buffer[3]
    if state == UNSYNCHRONISED:
        return Finding("clock", Level.WARNING, "not synchronised", "systemctl enable --now chrony, or PTP")
    found = f"synchronised, within {error_us / 1000:.1f} ms"
    if error_us < CLOCK_ERROR_US:
        return Finding("clock", Level.OK, found)
    return Finding("clock", Level.WARNING, found, "run chronyc tracking, or pmc for PTP")


def _output(config: NodeConfig) -> Iterator[Finding]:
    """The output directory holds events and journal."""
    directory = config.output.directory
    existing = directory if directory.exists() else directory.parent
    if not existing.is_dir():
        yield Finding(
            "output.directory", Level.PROBLEM, f"{directory}: there is no folder {existing}", f"mkdir -p {existing}"
        )
        return
    owner = existing.stat().st_uid
    user = os.geteuid()
    if not os.access(existing, os.W_OK | os.X_OK):
        mend = f"chown {user} {existing}, or set output.directory"
        yield Finding("output.directory", Level.PROBLEM, f"{existing} cannot be written by user {user}", mend)
    elif owner != user and existing == directory:
        mend = f"chown -R {user} {existing}: files of another user cannot be renamed"
        yield Finding("output.directory", Level.WARNING, f"{existing} is of user {owner}, this is {user}", mend)
    else:
        yield Finding("output.directory", Level.OK, f"{directory} can be written")
    foreign = [path.name for path in existing.iterdir() if path.is_file() and not os.access(path, os.W_OK)]
    if existing == directory and foreign:
        mend = f"chown -R {user} {existing}"
        yield Finding("journal", Level.PROBLEM, f"{foreign[0]} and others cannot be written", mend)
    status = os.statvfs(existing)
    free, needed = status.f_bavail * status.f_frsize, SPACE_FOR_FILES * config.output.max_file_bytes
    found = f"{free / GIB:.1f} GiB free at {existing}"
    if free >= needed:
        yield Finding("disk space", Level.OK, found)
    else:
        level = Level.WARNING if free > config.output.max_file_bytes else Level.PROBLEM
        mend = f"free {(needed - free) / GIB:.0f} GiB: {SPACE_FOR_FILES} files of output.max_file_bytes"
        yield Finding("disk space", level, found, mend)
