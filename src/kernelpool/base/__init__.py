"""What all estimators have in common."""
