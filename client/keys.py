"""CURVE keys of a client, from the files that `hltnode keys create` writes, with errors that name the file.

The files are pyzmq's certificates: NAME.key holds the public key, NAME.key_secret both. No message contains a secret.
"""

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
import zmq.auth
from zmq.utils import z85

SECRET_SUFFIX = ".key_secret"
KEY_LENGTH = 40
MAX_SECRET_FILE_BYTES = 65_536


class SecurityError(ValueError):
    """A key, allow-list or token is invalid; the message names the file, never its content."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A CURVE key pair, both parts in Z85."""

    public: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """Keys of a client for CURVE: its own pair and the public key of the node."""

    own: KeyPair
    server: bytes

    def apply(self, socket: zmq.Socket[Any]) -> None:
        """Set CURVE on a socket, before it connects."""
        socket.setsockopt(zmq.CURVE_PUBLICKEY, self.own.public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, self.own.secret)
        socket.setsockopt(zmq.CURVE_SERVERKEY, self.server)


def load_client_keys(server_key: Path | None, key_file: Path | None) -> ClientKeys | None:
    """The keys of a client from its two options, None for neither. Raises SecurityError."""
    if server_key is None and key_file is None:
        return None
    if server_key is None or key_file is None:
        raise SecurityError("--server-key and --key-file are expected together")
    return ClientKeys(load_key_pair(key_file), load_public_key(server_key))


def load_key_pair(path: Path) -> KeyPair:
    """The pair in a secret key file; only owner and group may read the file. Raises SecurityError."""
    refuse_open_file(path)
    public, secret = _load(path)
    if secret is None:
        raise SecurityError(f"{path}: expected a secret key file ({SECRET_SUFFIX}), found only a public key")
    if zmq.curve_public(secret) != public:
        raise SecurityError(f"{path}: public and secret key do not match")
    return KeyPair(public, secret)


def load_public_key(path: Path) -> bytes:
    """The public key (Z85) in a file. Raises SecurityError."""
    return _load(path)[0]


def refuse_open_file(path: Path) -> None:
    """Raise SecurityError for a file that all users can read or write."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SecurityError(f"{path}: cannot be read: {error.strerror}") from error
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise SecurityError(f"{path}: it is readable or writable by all users; expected mode 0600")


def read_key_file(path: Path) -> bytes:
    """The bytes of a file of at most the size of a key file. Raises SecurityError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_FILE_BYTES + 1)
    except OSError as error:
        raise SecurityError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_SECRET_FILE_BYTES:
        raise SecurityError(f"{path}: larger than any key file")
    return content


def _load(path: Path) -> tuple[bytes, bytes | None]:
    read_key_file(path)
    try:
        public, secret = zmq.auth.load_certificate(path)
    except ValueError as error:
        raise SecurityError(f"{path}: not a key file: no public key") from error
    for key in (public, secret):
        if key is not None and not _is_key(key):
            raise SecurityError(f"{path}: not a key file: a key has {KEY_LENGTH} characters of Z85")
    return public, secret


def _is_key(key: bytes) -> bool:
    try:
        return len(key) == KEY_LENGTH and len(z85.decode(key)) == 32
    except (ValueError, KeyError):
        return False
