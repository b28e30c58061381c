"""What a model is asked to do with a batch, and what it costs to get it wrong."""
