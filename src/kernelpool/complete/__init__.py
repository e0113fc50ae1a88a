"""Complete numbers for the networks that need them."""
