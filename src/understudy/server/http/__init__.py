"""The HTTP door: requests translated into calls of the gate, and their results into replies."""
