"""What can be said of a fitted model and of its predictions: its pool of kernels, what stands around it, metrics, intervals."""
