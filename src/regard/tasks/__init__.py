"""What people give and what they get back: lines into a model, answers out of it."""
