"""Looking inside a compiled function: its steps, their costs and times, a picture."""
