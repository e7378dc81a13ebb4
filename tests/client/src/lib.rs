//! The tests of the client stand in `tests/`: one binary, so that two cores link once.
