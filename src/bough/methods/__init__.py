"""Methods: one paper a file. A file defines a function of its name, `World -> Run`."""
