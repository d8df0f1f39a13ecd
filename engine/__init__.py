"""The inference engine: a GGUF model in this process, its cache, its chat format and its parser."""
