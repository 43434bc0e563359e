"""Write an audit as HTML, Markdown or JSON. Rendering shows records and computes nothing."""
