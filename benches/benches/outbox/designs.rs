//! Designs of a relay.
use crate::Measured;
pub(crate) fn measure<DB: Measured>(_: &tokio::runtime::Runtime, _: &sqlx::Pool<DB>) {}
