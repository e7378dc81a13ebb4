//! The tests of encryption stand in `tests/`, in a package of their own: the others are linked
//! without it.
