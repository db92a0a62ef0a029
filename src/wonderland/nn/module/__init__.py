"""What a module is: its parameters, buffers and members, their names, hooks and state."""
