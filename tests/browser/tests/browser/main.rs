//! The operators' page in a real browser.

mod acts;
mod axe;
mod collectors;
mod forms;
mod hands;
mod hostile;
#[cfg(target_os = "linux")]
mod leftovers;
mod outboxes;
mod pages;
mod proposals;
mod streams;
