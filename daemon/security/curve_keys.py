"""Key files, allow-lists and tokens: written with tight permissions, read with errors that name the file.

The files are pyzmq's certificates: NAME.key holds the public key, NAME.key_secret both. Nothing here ever puts a
secret into a message or a log.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
import zmq.auth
from zmq.utils import z85

PUBLIC_SUFFIX = ".key"
SECRET_SUFFIX = ".key_secret"
KEY_LENGTH = 40
# A shorter token could be guessed over the years that a farm runs; 32 bytes are what `keys token` writes.
MIN_TOKEN_LENGTH = 16
MAX_SECRET_FILE_BYTES = 65_536


class SecurityError(ValueError):
    """A key, allow-list or token that cannot be used; the message names the file, never its content."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A CURVE key pair, both parts in Z85."""

    public: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """What a client needs for CURVE: its own pair and the public key of the node."""

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


def create_key_pair(directory: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.key (readable by all) and NAME.key_secret (0600).

    Raises:
        SecurityError: one of them exists; a key is never overwritten.
        OSError: the directory cannot be written.
    """
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    public, secret = directory / (name + PUBLIC_SUFFIX), directory / (name + SECRET_SUFFIX)
    for path in (public, secret):
        if path.exists():
            raise SecurityError(f"{path}: exists, and a key is never overwritten")
    # From the first byte on no other user may read the secret one.
    umask = os.umask(0o077)
    try:
        zmq.auth.create_certificates(directory, name)
    finally:
        os.umask(umask)
    public.chmod(0o644)
    return public, secret


def load_key_pair(path: Path) -> KeyPair:
    """The pair in a secret key file that only its owner and group can read. Raises SecurityError."""
    _refuse_open_file(path)
    public, secret = _load(path)
    if secret is None:
        raise SecurityError(f"{path}: expected a secret key file ({SECRET_SUFFIX}), it holds a public key only")
    if zmq.curve_public(secret) != public:
        raise SecurityError(f"{path}: public and secret key are no pair")
    return KeyPair(public, secret)


def load_public_key(path: Path) -> bytes:
    """The public key (Z85) in a file. Raises SecurityError."""
    return _load(path)[0]


def load_allow_list(directory: Path) -> dict[bytes, str]:
    """Public keys (Z85) of all *.key files of a directory, with the names of the files. Raises SecurityError."""
    if not directory.is_dir():
        raise SecurityError(f"{directory}: expected a directory of public keys")
    return {load_public_key(path): path.stem for path in sorted(directory.glob("*" + PUBLIC_SUFFIX))}


def load_token(path: Path) -> bytes:
    """The token in a file, without the white space around it. Raises SecurityError."""
    _refuse_open_file(path)
    token = _read(path).strip()
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or any(byte <= 0x20 for byte in token):
        raise SecurityError(f"{path}: expected one token of at least {MIN_TOKEN_LENGTH} visible ASCII characters")
    return token


def _refuse_open_file(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SecurityError(f"{path}: cannot be read: {error.strerror}") from error
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise SecurityError(f"{path}: it is readable or writable by all users; expected mode 0600")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_FILE_BYTES + 1)
    except OSError as error:
        raise SecurityError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_SECRET_FILE_BYTES:
        raise SecurityError(f"{path}: larger than any key file")
    return content


def _load(path: Path) -> tuple[bytes, bytes | None]:
    _read(path)
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
