"""One node: assembly of its parts, periodic work, sizes."""
