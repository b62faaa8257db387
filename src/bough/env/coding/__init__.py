"""Programming tasks: families of generated ones, rows of a user, and their tests in the sandbox."""
