"""Policy presets, one a file: a function `World -> World` sets a model and the settings that depend on it."""
