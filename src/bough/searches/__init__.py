"""Published searches, each a function in a file of its name: settings of a `Search` and of its pieces."""
