"""Small wrong changes, made one at a time, to measure what the tests notice (`make mutants`)."""
