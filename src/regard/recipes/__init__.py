"""Each system of the literature as one short function that returns its whole spec."""
