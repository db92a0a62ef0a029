"""The same workloads in other frameworks, for interpreters that have them; nothing else needs them."""
