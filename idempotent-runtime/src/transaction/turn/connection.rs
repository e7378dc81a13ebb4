//! The connection of one try.

use sqlx::{Database, pool::PoolConnection};

/// A connection out of the pool, which it does not get back but by [`give_back`](Self::give_back):
/// it is closed elsewhere, so that no transaction is left open on it.
pub(super) struct OwnedConnection<DB: Database>(pub(super) Option<PoolConnection<DB>>);

impl<DB: Database> OwnedConnection<DB> {
    pub(super) fn give_back(mut self) {
        self.0 = None;
    }
}

impl<DB: Database> Drop for OwnedConnection<DB> {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.close_on_drop();
        }
    }
}
