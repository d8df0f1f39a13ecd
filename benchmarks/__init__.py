"""Measurements that stand in README and docs: each prints its figures with machine, model and command."""
