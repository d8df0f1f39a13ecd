"""Tool calls: how they are written, whether they fit their schema, and a grammar that sees to it."""
