"""What every other room stands on: errors, specs, masks, states, the tape."""
