"""Who changed and why: explanation, audit and the rendered report."""
