//! The trail on real databases: what leaves an entry, and what keeps one from being left out.

#[macro_use]
mod harness;

mod approved;
mod besides;
mod broken;
mod entries;
mod logged;
mod made;
mod moved;
mod pruned;
mod roles;
mod sealed;
mod tampered;
mod timeline;
mod watched;
