"""Tasks of one prompt and one answer, rated by functions."""
