"""Provokes every alert on real nodes, with Prometheus and Alertmanager: `make alerts`."""
