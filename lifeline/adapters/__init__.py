"""The same game as an environment of other libraries, each an optional extra that nothing else here imports."""
