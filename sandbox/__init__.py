"""What keeps the person's machine safe: paths, policy, the shell, snapshots and the audit log."""
