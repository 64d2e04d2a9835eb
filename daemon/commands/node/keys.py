"""hltnode keys: key pairs for CURVE and tokens for commands over HTTP."""

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from hltnode.daemon.commands.common import user_errors
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.security.curve_keys import create_key_pair

TOKEN_BYTES = 32

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Write key pairs for CURVE and tokens for HTTP commands.",
    no_args_is_help=True,
)


@app.command()
def create(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the keys; created if it is missing.")],
    name: Annotated[str, typer.Option("--name", help="Owner of the key; part of the file names.")] = "node",
) -> None:
    """Write a key pair: DIR/NAME.key (public, to copy) and DIR/NAME.key_secret (secret, mode 0600).

    Example: hltnode keys create /etc/hltnode/keys --name farm-1
    """
    with user_errors():
        if not name or Path(name).name != name:
            raise ValueError(f"--name {name}: expected a plain file name")
        public, secret = create_key_pair(directory, name)
    echo(f"public key {public}\nsecret key {secret}")


@app.command()
def token(file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; must not exist.")]) -> None:
    """Write a random token for commands over HTTP (mode 0600).

    Example: hltnode keys token /etc/hltnode/http-token
    """
    with user_errors():
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
    echo(f"token {file}")
