//! The page over plain HTTP, without a script.

mod access;
mod acts;
mod example;
mod forms;
mod mails;
mod pages;
mod seconds;
mod shop;
mod strange;
