"""Pictures: read by the vision encoder, and standing in the conversation as vectors in place of tokens."""
