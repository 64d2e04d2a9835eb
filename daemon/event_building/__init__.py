"""The event builder: from fragments to MEPs in slots, without I/O and without a clock."""
