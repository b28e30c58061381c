"""What a person touches: the command line, and using runs from Python."""
