"""The Grafana dashboards: their content (one module each), and its conversion to JSON (`rendering`)."""
