"""Steps that write their own loops: scatter, running sums, random words, sorting."""
