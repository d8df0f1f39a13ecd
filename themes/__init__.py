"""Colour themes as TOML data; the screen reads them, nothing else does."""
