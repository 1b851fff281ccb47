"""Boundary evaluation without MATLAB: non-maximum suppression, thinning, exact one-to-one matching, precision–recall.

The modules here import numba, so they are imported where they are used.
"""
