"""Functions that are traced to graphs once and run by an engine from then on."""
