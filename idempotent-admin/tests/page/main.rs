//! The page over plain HTTP, without a script.

mod access;
mod acts;
mod example;
mod pages;
mod shop;
mod strange;
