"""Pure functions, arrays in, weights out.

Only what is trained by gradients imports JAX: `adversarial` (COMMOD), `frappe` and `debiasing`,
with the loop (`training`) and the functions (`networks`) that they share.
"""
