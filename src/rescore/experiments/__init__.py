"""The paper's experiments, and anybody's own: declared in TOML, run as trials, kept as records."""
