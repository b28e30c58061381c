"""What a person types, a room for each kind of work. Heavy imports are inside the command that needs them."""
