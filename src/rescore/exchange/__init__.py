"""Models on disk and in other programs."""
