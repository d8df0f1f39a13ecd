"""How the person's pictures get into a message: pasted from the clipboard, or named in what they type."""
