//! Real processes on one SQLite file, or one server: killed with SIGKILL at exact points, stopped
//! past their lease and woken, and ten at once.
//!
//! The test binary starts itself again as the child, which stops at a point, says so, and waits for
//! its end. The log of the bodies stands on disk, so that it outlives them.

#[macro_use]
mod place;

#[cfg(target_os = "linux")]
mod backlog;
#[cfg(target_os = "linux")]
mod clocks;
mod crowd;
mod death;
mod pause;
mod transfers;

mod child;
mod job;
mod log;
mod numbers;
mod outbox;
mod process;
mod sagas;
