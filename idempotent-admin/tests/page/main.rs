//! The page over plain HTTP, without a script.

mod access;
mod acts;
mod audited;
mod bulk;
mod example;
mod forms;
mod hangs;
mod outboxes;
mod pages;
mod proposals;
mod reveal;
mod shop;
mod steps;
mod strange;
