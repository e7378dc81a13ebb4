//! The operators' page in a real browser.

mod acts;
mod audited;
mod axe;
mod collectors;
mod forms;
mod hands;
mod hostile;
#[cfg(target_os = "linux")]
mod leftovers;
mod many;
mod outboxes;
mod pages;
mod proposals;
mod streams;
