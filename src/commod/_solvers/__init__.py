"""Pure functions, arrays in, weights out. Only `adversarial` imports JAX."""
