//! The page over plain HTTP, without a script.

mod access;
mod example;
mod pages;
mod shop;
mod strange;
