//! What the attribute accepts and refuses: the cases stand in `pass/` and `fail/`.
