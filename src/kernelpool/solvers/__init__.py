"""Maximizers of smooth objectives whose gradients are sums over rows."""
