//! The integration tests stand in `tests/`: one binary, so that two cores link once.
