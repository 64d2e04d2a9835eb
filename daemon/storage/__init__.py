"""Event files, their journal, recovery after a kill or a power cut, and the quarantine."""
