"""How a shell command is read and judged: its words, the readers it may use, and what would destroy."""
