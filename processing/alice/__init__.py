"""ALICE: tracks of the time projection chamber (TPC)."""
