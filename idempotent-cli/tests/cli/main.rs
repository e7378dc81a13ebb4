//! The program as a process, over every store.

mod acts;
mod audits;
mod doctors;
mod large;
mod lists;
mod looks;
mod outboxes;
mod settled;
mod shop;
mod streams;
mod usage;
