"""The vision encoder of the demonstration model: how it is trained to read a failing test off a screen."""
