//! A server of one test's own, which may be killed, stopped, started again and starved.
//!
//! It listens on a socket in a folder of its own, so that it is found again after a restart, and no
//! other server takes its place meanwhile. It runs under a shell that outlives the test for as long
//! as it takes to clean up.

mod folder;
mod product;

use std::{
    io::{self, Write},
    process::Child,
    sync::Arc,
    time::Duration,
};

use idempotent_runtime::store::Store;

pub(super) use self::folder::Disk;
use self::folder::{Folder, assert_succeeded};
pub(crate) use self::product::Product;

/// Less than a test has, so that a server that does not start is heard.
const PATIENCE: Duration = Duration::from_secs(40);

/// A server, and the folder in which it lies.
pub(crate) struct Spare {
    product: Product,
    settings: Vec<String>,
    environment: Vec<(&'static str, String)>,
    folder: Folder,
    guard: Option<Child>,
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By `kill -9`: it has no time to write anything.
    Killed,
    /// As an operator ends it.
    Orderly,
}

impl Spare {
    /// Starts a server that keeps what it answered.
    pub(super) async fn new(product: Product) -> Self {
        let durable: &[&str] = match product {
            Product::Postgres | Product::MariaDb => &[],
            Product::Redis => &["--appendonly", "yes", "--appendfsync", "always"],
        };
        Self::with(product, durable).await
    }

    pub(crate) async fn with(product: Product, settings: &[&str]) -> Self {
        Self::over(product, settings, Folder::new(), &[]).await
    }

    /// It is shown another world, by a library that reads this `environment`. In values, `{}` is
    /// the folder.
    #[cfg(unix)]
    pub(super) async fn deceived(
        product: Product,
        settings: &[&str],
        source: &str,
        environment: &[(&'static str, &str)],
    ) -> Self {
        let folder = Folder::new();
        let library = crate::harness::library(&folder.data(), source);
        let loaded = ("LD_PRELOAD", library.to_str().expect("it is text"));
        let environment = [&[loaded], environment].concat();
        Self::over(product, settings, folder, &environment).await
    }

    /// All of its data lies on a disk of so many MiB.
    pub(super) async fn on_disk_of(size: u32, product: Product, settings: &[&str]) -> Self {
        Self::over(product, settings, Folder::new().with_disk(size), &[]).await
    }

    async fn over(
        product: Product,
        settings: &[&str],
        folder: Folder,
        environment: &[(&'static str, &str)],
    ) -> Self {
        let made = folder.command(product.prepare()).output();
        assert_succeeded(product.prepare()[0], &made.expect("`env` runs"));
        let mut spare = Self {
            product,
            settings: settings.iter().copied().map(str::to_owned).collect(),
            environment: environment
                .iter()
                .map(|(name, value)| (*name, folder.named(value)))
                .collect(),
            folder,
            guard: None,
        };
        spare.start().await;
        spare
    }

    pub(crate) fn url(&self) -> String {
        self.folder.named(self.product.url())
    }

    /// A client of the library.
    pub(super) async fn store(&self) -> Arc<dyn Store> {
        let connected = self.product.connect(&self.url()).await;
        connected.expect("the server answers")
    }

    /// Ends it, and returns when it is gone.
    pub(super) async fn end(&mut self, ending: Ending) {
        let signal = match ending {
            Ending::Killed => "KILL",
            Ending::Orderly => self.product.orderly(),
        };
        let mut guard = self.guard.take().expect("it runs");
        tell(&mut guard, signal).expect("the guard listens");
        let ended = tokio::task::spawn_blocking(move || guard.wait()).await;
        ended.expect("no panic").expect("it ends");
    }

    /// Starts it over the same data, and returns when it answers.
    pub(super) async fn start(&mut self) {
        let answers = async {
            loop {
                // The remains of the server before may be in the way of the first try.
                if self.has_ended() {
                    let serve = self.product.serve();
                    let guard = self.folder.guard(serve, &self.settings, &self.environment);
                    self.guard = Some(guard);
                }
                if self.product.answers(&self.url()).await {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let answered = tokio::time::timeout(PATIENCE, answers).await;
        assert!(
            answered.is_ok(),
            "no answer; it said\n{}",
            self.folder.said()
        );
    }

    pub(super) fn has_ended(&mut self) -> bool {
        let status = self.guard.as_mut().map(Child::try_wait);
        !matches!(status, Some(Ok(None)))
    }

    /// Sets a variable in the environment for its next start.
    #[cfg(unix)]
    pub(super) fn set(&mut self, name: &'static str, value: &str) {
        self.environment.push((name, value.to_owned()));
    }

    /// Writes a file that the server reads.
    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.data().join(name), text).expect("a file");
    }

    /// Resolves when the server has taken a file away.
    #[cfg(unix)]
    pub(super) async fn taken(&self, name: &str) {
        let file = self.folder.data().join(name);
        let taken = async {
            while file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        crate::harness::in_time(taken).await;
    }

    /// The disk that its data is on.
    pub(super) fn disk(&self) -> Disk {
        self.folder.disk()
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            // A guard that hears nothing any more knows by itself what to do.
            let _ = tell(&mut guard, self.product.at_once());
            let _ = guard.wait();
        }
    }
}

/// Says the last word to a guard.
fn tell(guard: &mut Child, signal: &str) -> io::Result<()> {
    match guard.stdin.take() {
        Some(mut guard) => writeln!(guard, "{signal}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::in_time;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs a server: cargo xtask test"]
    async fn nothing_is_left_where_the_test_is_killed() {
        for product in [Product::Postgres, Product::MariaDb, Product::Redis] {
            let mut server = Spare::on_disk_of(100, product, &[]).await;
            let mut guard = server.guard.take().expect("it runs");
            // The system does that for a dead process.
            drop(guard.stdin.take());

            let ended = tokio::task::spawn_blocking(move || guard.wait());
            in_time(ended).await.expect("no panic").expect("it ends");
            let gone = async {
                while server.folder.is_there() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            in_time(gone).await;
            assert!(!product.answers(&server.url()).await, "{product:?}");
        }
    }
}
