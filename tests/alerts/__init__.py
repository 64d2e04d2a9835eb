"""Every alert provoked on real nodes, with Prometheus and Alertmanager: `make alerts`."""
