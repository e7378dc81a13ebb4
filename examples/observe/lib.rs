//! The program stands in `examples/`.
