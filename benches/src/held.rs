//! Connections to a SQL server, each in the hands of one task.

use std::sync::Arc;

use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Mutex, MutexGuard};

/// Connections that are held, as in code written by hand that keeps the cost low: none is pinged,
/// as the store's own are not. Clones are the same connections.
#[derive(Debug)]
pub struct Held<C>(Arc<Vec<Mutex<C>>>);

impl<C: Connection> Held<C> {
    /// Opens one for each of so many tasks.
    ///
    /// # Panics
    ///
    /// When the URL is none, or no server answers there.
    pub async fn open(url: &str, tasks: u32) -> Self {
        let options: C::Options = url.parse().expect("a URL");
        let options = options.disable_statement_logging();
        let mut connections = Vec::new();
        for _ in 0..tasks {
            let connection = options.connect().await.expect("the server answers");
            connections.push(Mutex::new(connection));
        }
        Self(Arc::new(connections))
    }

    /// The one of this task, counted from 0.
    ///
    /// # Panics
    ///
    /// When there are not so many.
    pub async fn of(&self, task: usize) -> MutexGuard<'_, C> {
        self.0[task].lock().await
    }
}

impl<C> Clone for Held<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
