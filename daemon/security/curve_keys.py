"""Key files, allow-lists and tokens: written with restricted permissions, read with errors that name the file.

The files are pyzmq certificates: NAME.key holds the public key, NAME.key_secret both keys. No secret ever appears in an
error message or a log line.
"""

import os
from pathlib import Path

import zmq.auth

from hltnode.client.keys import SECRET_SUFFIX, SecurityError, load_public_key, read_key_file, refuse_open_file

PUBLIC_SUFFIX = ".key"
# A shorter token could be guessed over the years that a farm runs. `hltnode keys token` writes 32 bytes.
MIN_TOKEN_LENGTH = 16


def create_key_pair(directory: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.key (readable by all) and NAME.key_secret (0600).

    Raises:
        SecurityError: one of the files exists; a key is never overwritten.
        OSError: the directory cannot be written.
    """
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    public, secret = directory / (name + PUBLIC_SUFFIX), directory / (name + SECRET_SUFFIX)
    for path in (public, secret):
        if path.exists():
            raise SecurityError(f"{path}: exists, and a key is never overwritten")
    # With this mask no other user can read the secret key, from its first byte on.
    umask = os.umask(0o077)
    try:
        zmq.auth.create_certificates(directory, name)
    finally:
        os.umask(umask)
    public.chmod(0o644)
    return public, secret


def load_allow_list(directory: Path) -> dict[bytes, str]:
    """The public keys (Z85) of all *.key files of a directory, with the file names. Raises SecurityError."""
    if not directory.is_dir():
        raise SecurityError(f"{directory}: expected a directory of public keys")
    return {load_public_key(path): path.stem for path in sorted(directory.glob("*" + PUBLIC_SUFFIX))}


def load_token(path: Path) -> bytes:
    """The token in a file, without surrounding white space. Raises SecurityError."""
    refuse_open_file(path)
    token = read_key_file(path).strip()
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or any(byte <= 0x20 for byte in token):
        raise SecurityError(f"{path}: expected one token of at least {MIN_TOKEN_LENGTH} visible ASCII characters")
    return token
