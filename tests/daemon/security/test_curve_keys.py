"""Key files and tokens: readable by their owner only; bad files are refused by name."""

import stat
from pathlib import Path

import pytest
import zmq
from typer.testing import CliRunner

from hltnode.client.keys import SecurityError, load_client_keys, load_key_pair, load_public_key
from hltnode.daemon.cli import app
from hltnode.daemon.security.curve_keys import create_key_pair, load_allow_list, load_token

if not zmq.has("curve"):
    pytest.skip("libzmq has no CURVE", allow_module_level=True)


def test_a_new_key_pair_is_valid_and_only_its_owner_can_read_the_secret(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["keys", "create", str(tmp_path / "keys"), "--name", "farm-1"])
    assert result.exit_code == 0, result.output
    secret = tmp_path / "keys" / "farm-1.key_secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    pair = load_key_pair(secret)
    assert load_public_key(tmp_path / "keys" / "farm-1.key") == pair.public
    assert pair.secret.decode() not in repr(pair)
    assert pair.secret.decode() not in result.output


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    create_key_pair(tmp_path, "a")
    with pytest.raises(SecurityError, match="never overwritten"):
        create_key_pair(tmp_path, "a")


def test_a_name_cannot_leave_the_directory(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["keys", "create", str(tmp_path), "--name", "../a"]).exit_code == 2


def test_a_secret_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    _, secret = create_key_pair(tmp_path, "a")
    secret.chmod(0o644)
    with pytest.raises(SecurityError, match="it is readable"):
        load_key_pair(secret)


def test_files_without_a_key_are_refused_by_name(tmp_path: Path) -> None:
    public, secret = create_key_pair(tmp_path, "a")
    bad = tmp_path / "bad.key"
    for content in ("", "hello", 'public-key = "short"', f'public-key = "{"~" * 40}"', "x" * 100_000):
        bad.write_text(content)
        with pytest.raises(SecurityError, match=r"bad\.key"):
            load_public_key(bad)
    with pytest.raises(SecurityError, match="cannot be read"):
        load_public_key(tmp_path / "absent.key")
    public.chmod(0o600)
    with pytest.raises(SecurityError, match="found only a public key"):
        load_key_pair(public)
    other, _ = create_key_pair(tmp_path, "b")
    secret.write_text(other.read_text() + secret.read_text().split("public-key")[1].split("\n", 1)[1])
    with pytest.raises(SecurityError, match="do not match"):
        load_key_pair(secret)


def test_an_allow_list_is_all_public_keys_of_a_directory(tmp_path: Path) -> None:
    names = {load_public_key(create_key_pair(tmp_path, name)[0]): name for name in ("a", "b")}
    assert load_allow_list(tmp_path) == names
    with pytest.raises(SecurityError, match="expected a directory"):
        load_allow_list(tmp_path / "absent")


def test_a_client_needs_both_keys_or_none(tmp_path: Path) -> None:
    public, secret = create_key_pair(tmp_path, "a")
    assert load_client_keys(None, None) is None
    assert load_client_keys(public, secret) is not None
    with pytest.raises(SecurityError, match="together"):
        load_client_keys(public, None)


def test_a_new_token_is_long_private_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "token"
    assert CliRunner().invoke(app, ["keys", "token", str(path)]).exit_code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(load_token(path)) >= 40
    assert CliRunner().invoke(app, ["keys", "token", str(path)]).exit_code == 2


@pytest.mark.parametrize("content", ["", "short", "two words of a token", "ä" * 20])
def test_a_weak_or_strange_token_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(SecurityError, match="expected one token"):
        load_token(path)
