"""Types of configuration keys, with checks beyond those of plain types."""

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hltnode.daemon.common.endpoints import check_endpoint, check_http_address, check_udp_endpoint
from hltnode.daemon.common.vocabulary import EventStream, SlowConsumerPolicy
from hltnode.protocol.raw_data.bank_types import LIST_TYPES
from hltnode.protocol.transport.endpoints import MAX_UNIX_PATH

CREDENTIALS_PREFIX = "$CREDENTIALS_DIRECTORY/"

# Nodes of one farm page; at 32 requests a second, each is asked every eight seconds.
MAX_FARM_NODES = 256
KIB = 1024
MIB = 1024 * KIB


class Section(BaseModel):
    """A section of the configuration. The reference page shows the docstrings of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _check_file_policy(policy: SlowConsumerPolicy) -> SlowConsumerPolicy:
    if policy is SlowConsumerPolicy.DROP_OLD:
        raise ValueError("expected wait or drop_new: events in a file cannot be dropped")
    return policy


def _check_unix_path(path: Path) -> Path:
    if not path.is_absolute() or len(os.fsencode(path)) > MAX_UNIX_PATH:
        raise ValueError(f"expected an absolute path of at most {MAX_UNIX_PATH} bytes")
    return path


def _check_path(value: object) -> object:
    """Refuse an empty path, which would mean the current folder."""
    if value == "":
        raise ValueError("expected a path")
    return value


def _check_sources(sources: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(sources)) != len(sources):
        raise ValueError("expected each source id once")
    return sources


def _check_addresses(addresses: tuple[str, ...]) -> tuple[str, ...]:
    if len({address.rstrip("/").lower() for address in addresses}) != len(addresses):
        raise ValueError("expected each address once")
    return addresses


def _check_list_names(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError("expected each list once")
    return names


def _check_cpus(cpus: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(cpus)) != len(cpus):
        raise ValueError("expected each CPU once")
    return cpus


def _check_streams(streams: tuple[EventStream, ...]) -> tuple[EventStream, ...]:
    if len(set(streams)) != len(streams):
        raise ValueError("expected each stream once")
    return streams


def _check_ip_address(text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        raise ValueError("expected an IP address such as 10.0.0.1") from None
    if address.version == 6 and address.scope_id is not None:
        raise ValueError("expected an IPv6 address without a scope (%...)")
    return str(address)


# A list has a bank type of its own (protocol/raw_data/bank_types.py).
ListNames = Annotated[tuple[str, ...], Field(max_length=len(LIST_TYPES)), AfterValidator(_check_list_names)]
HttpAddress = Annotated[str, AfterValidator(check_http_address)]
HttpAddresses = Annotated[
    tuple[HttpAddress, ...], Field(min_length=1, max_length=MAX_FARM_NODES), AfterValidator(_check_addresses)
]
Endpoint = Annotated[str, AfterValidator(check_endpoint)]
UdpEndpoint = Annotated[str, AfterValidator(check_udp_endpoint)]
IpAddress = Annotated[str, AfterValidator(_check_ip_address)]
FilePath = Annotated[Path, BeforeValidator(_check_path)]
FilePolicy = Annotated[SlowConsumerPolicy, AfterValidator(_check_file_policy)]
EventStreams = Annotated[tuple[EventStream, ...], AfterValidator(_check_streams)]
# 4096 is the largest number of CPUs of common kernels.
Cpus = Annotated[tuple[Annotated[int, Field(ge=0, le=4095)], ...], Field(min_length=1), AfterValidator(_check_cpus)]
UnixPath = Annotated[Path, AfterValidator(_check_unix_path)]
SourceId = Annotated[int, Field(ge=0, le=0xFFFF)]
SourceIds = Annotated[tuple[SourceId, ...], Field(min_length=1), AfterValidator(_check_sources)]


def _expand_credentials(value: object) -> object:
    """Replace $CREDENTIALS_DIRECTORY/, the directory in which systemd puts the secrets of a service."""
    _check_path(value)
    if not isinstance(value, str) or not value.startswith(CREDENTIALS_PREFIX):
        return value
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    if not directory:
        raise ValueError("expected the variable CREDENTIALS_DIRECTORY, which systemd sets for LoadCredential=")
    return str(Path(directory) / value.removeprefix(CREDENTIALS_PREFIX))


SecretPath = Annotated[Path, BeforeValidator(_expand_credentials)]
