//! The cryptography that encrypted connections use.

use redis::{Client, ConnectionAddr};
use rustls::crypto::CryptoProvider;

/// Chooses the cryptography of our own feature where the program has chosen none, as rustls would
/// if there were only one in the program. With two of them rustls does not choose, and the driver
/// panics. Other crates decide whether there are two.
pub(super) fn choose(clients: &[Client]) {
    let is_encrypted = |client: &Client| {
        let address = client.get_connection_info().addr();
        matches!(address, ConnectionAddr::TcpTls { .. })
    };
    if clients.iter().any(is_encrypted) && CryptoProvider::get_default().is_none() {
        #[cfg(any(
            feature = "tls-rustls-ring-native-roots",
            feature = "tls-rustls-ring-webpki"
        ))]
        let ours = rustls::crypto::ring::default_provider();
        #[cfg(not(any(
            feature = "tls-rustls-ring-native-roots",
            feature = "tls-rustls-ring-webpki"
        )))]
        let ours = rustls::crypto::aws_lc_rs::default_provider();
        // It fails if other code was quicker, whose choice it is then.
        drop(ours.install_default());
    }
}
