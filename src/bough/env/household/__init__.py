"""ALFWorld's games: the package's domain, grammar and floor plans, played and solved without its simulator."""
