//! How long a connection to a server may lie idle.

use std::time::Duration;

/// Less than what servers, and what is on the way to them, allow. Some of these drop a connection
/// without a word, and who uses it then waits for its answer in vain.
pub(in crate::store) const LONGEST_IDLE: Duration = Duration::from_secs(3 * 60);
