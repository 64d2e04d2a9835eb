"""The names by which pages may be asked for."""

from __future__ import annotations

import pytest

from hltnode.daemon.monitoring.http_hosts import HostNames

OWN = ["localhost", "localhost:9105", "LocalHost.", "node.localhost", "127.0.0.1", "127.0.0.1:80", "[::1]:9105", "::1"]
OTHERS = [
    "rebound.example",
    "rebound.example:9105",
    "localhost.example",
    "",
    ":9105",
    "127.0.0.1.example",
    "[x",
    "[::1].evil.example",
    "[::1]evil.example:80",
    "[::1]:80.evil.example",
    "127.0.0.1:80.evil.example",
    "[127.0.0.1",
    "\xff",
]


@pytest.mark.parametrize("field", OWN)
def test_localhost_and_addresses_are_accepted_with_any_port(field: str) -> None:
    assert HostNames("127.0.0.1").accept(field)
    assert HostNames("127.0.0.1", ["proxy.example"]).accept(field)
    assert HostNames("::1").accept(field)


@pytest.mark.parametrize("field", OTHERS)
def test_other_names_are_refused_on_the_loopback(field: str) -> None:
    assert not HostNames("127.0.0.1").accept(field)
    assert not HostNames("::1").accept(field)
    assert not HostNames("localhost").accept(field)


def test_with_configured_names_all_others_are_refused_on_every_interface() -> None:
    for host in ("127.0.0.1", "0.0.0.0", "::"):
        names = HostNames(host, ["Proxy.example"])
        assert names.accept("proxy.example:443")
        assert not names.accept("rebound.example")


def test_a_node_on_the_network_answers_to_any_name() -> None:
    assert HostNames("0.0.0.0").accept("node-7.farm.example:9105")
    assert HostNames("192.0.2.7").accept("node-7.farm.example:9105")
