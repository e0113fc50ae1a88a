"""Selection of settings and of weights by what networks say of rows that were held out."""
