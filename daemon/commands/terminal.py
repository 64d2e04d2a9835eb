"""Text of others on a terminal: names in files, answers of nodes, error texts with data in them.

Control characters in it could move the cursor, change the title or the colours, or hide what follows. They are shown
as escapes. The same holds for characters without an encoding, which would end the command with an error.
"""

import re
from contextvars import ContextVar

import typer

# C0 and C1 controls except line feed and tab, line separators, marks that reverse the order of characters, surrogates.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


text_on_standard_error: ContextVar[bool] = ContextVar("text_on_standard_error", default=False)
"""Whether text for people goes to standard error, because `--json -` writes to standard output."""


def shown(text: str) -> str:
    """The text with hidden characters as escapes, such as \\x1b."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def echo(text: str) -> None:
    """Print a line on standard output, with hidden characters as escapes; with `--json -`, on standard error."""
    typer.echo(shown(text), err=text_on_standard_error.get())
