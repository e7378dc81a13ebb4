//! What the crate costs, side by side with the alternatives: the benches stand in `benches/`.
