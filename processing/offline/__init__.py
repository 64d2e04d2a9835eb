"""What the offline parts of chains share; no detector is named here."""
