"""Programs that answer instead of our own steps, where they can do the same sooner."""
