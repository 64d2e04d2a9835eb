"""HTML pages of reports. Needs matplotlib and Jinja2."""
