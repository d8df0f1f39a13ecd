"""What the model can do: one file a tool, each with a reading phase and an applying phase."""
