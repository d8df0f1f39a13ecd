"""Pictures: from any file or program to bounded PNG bytes. Knows no model and no screen of Glimmer's."""
