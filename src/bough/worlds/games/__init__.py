"""Games of OpenSpiel against a scripted opponent."""
