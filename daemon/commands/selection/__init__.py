"""Commands on lines and trigger configurations: content, rates and efficiencies."""
