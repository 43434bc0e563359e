"""Turn everything that a user passes into checked arrays.

Every table, label, group, weight and base model is read here, and nowhere else.
"""
