"""The paper's tables and figures on the library's public API: `make paper`, `make paper-quick`.

`run` computes cells and keeps them, one module per table or figure says which cells it needs, turns
them into tidy tables, draws them and says what the paper's claim became; `page` writes it all down.
"""
