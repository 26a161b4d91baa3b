"""Players: everything that can be asked for a move."""
