"""Monitoring: counters, metrics, health, the HTTP server."""
