"""Training by gradients: the only place in the library that knows JAX."""
