"""Commands on lines and trigger configurations: what they are, and what they select."""
