"""The Grafana dashboards: what they show (one module each), and how that becomes JSON (`rendering`)."""
