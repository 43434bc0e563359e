"""Pure functions, arrays in, weights out; `problem` has the records that they share.

Only `training` imports JAX: `adversarial` trains COMMOD, with the loop (`loop`) and the functions
(`networks`) that rivals use, too. `concepts` writes a trained ratio in one standard way.
"""
