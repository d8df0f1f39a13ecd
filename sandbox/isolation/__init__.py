"""Confinement of commands by the operating system: what they see, write and reach."""
