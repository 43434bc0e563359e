"""The paper's tables and figures on the library's public API: `make paper`, `make paper-quick`.

1. `run` computes cells of work and stores them.
2. One module per table or figure lists the cells it needs and makes tidy tables of them.
3. `pictures` draws the tables, and `entries` compares them with the paper's claims.
4. `page` writes docs/paper.md.
"""
