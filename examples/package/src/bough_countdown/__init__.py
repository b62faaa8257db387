"""A world and a credit rule for Bough, in a package of their own."""
