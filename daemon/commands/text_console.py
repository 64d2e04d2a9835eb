"""A console for text of others: hidden characters are shown as escapes, also in tables."""

from typing import Any

from rich.console import Console
from rich.text import Text

from hltnode.daemon.commands.terminal import shown, text_on_standard_error


class TextConsole(Console):
    """A console that shows hidden characters as escapes in all its text, tables included.

    Markup is a matter of the caller: `markup=False` for a console of data, `rich.markup.escape` for text in markup.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Text of a string."""
        return super().render_str(shown(text), **options)


def results_console(**options: Any) -> TextConsole:
    """A console for results, which are text of data: on standard output; with `--json -`, on standard error."""
    return TextConsole(stderr=text_on_standard_error.get(), emoji=False, **options)
