//! The programs stand in `examples/`.
