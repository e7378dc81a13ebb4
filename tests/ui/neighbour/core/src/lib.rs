//! A crate of an application that has the name of one of Rust's own.
