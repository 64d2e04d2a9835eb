"""What is counted, and where it is read: counters, metrics, health, the HTTP server."""
