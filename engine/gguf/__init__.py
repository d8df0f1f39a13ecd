"""Model files: what GGUF files hold, checked before native code sees them."""
