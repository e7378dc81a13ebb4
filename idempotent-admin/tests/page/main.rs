//! The page over plain HTTP, without a script.

mod access;
mod acts;
mod example;
mod forms;
mod outboxes;
mod pages;
mod proposals;
mod shop;
mod strange;
