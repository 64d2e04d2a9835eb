"""Event files and their journal: written, recovered after a kill or a power cut, and what is moved to quarantine."""
