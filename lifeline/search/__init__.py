"""Search over many games at once. Knows a game only through the interface of `BatchEnv`."""
