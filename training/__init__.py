"""Learning to play Lifeline by self-play."""
