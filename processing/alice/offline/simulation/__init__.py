"""Events in ALICE's TPC, with truth."""
