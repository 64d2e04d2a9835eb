"""What is on the wire and on disk: pure functions over buffers, without I/O, threads or clock."""
