"""Numbers of objects as text."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 hit`, `2 hits`. plural: of nouns that do more than add an s, such as `vertices`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
