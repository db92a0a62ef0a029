"""The same workloads in other frameworks, which need not be installed: each file runs in an interpreter that has its own."""
