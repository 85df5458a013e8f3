"""People who use Weir and how they sign in."""
