//! The protocol, checked exhaustively: the model stands in `tests/`.
