"""The workbench in a browser: load, repair, fit, doubt, tell it what you know, and refit."""
