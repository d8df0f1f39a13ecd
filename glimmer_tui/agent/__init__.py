"""The agent loop: session, turn, dispatch and history. It knows nothing of Textual."""
