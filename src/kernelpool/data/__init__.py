"""What every fit does first."""
