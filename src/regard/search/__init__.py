"""Search: greedy, beam, sampling and exhaustive, over anything that can tell its next token."""
