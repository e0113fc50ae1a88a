"""Training: typed settings and rows in, fitted parameters out; the estimators are shells around
it.
"""
