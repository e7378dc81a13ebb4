//! Redis, as durable as it can be.

use std::{io, path::PathBuf, process::Command};

use super::{Ending, Start, authority::Certificate, find, part::Part};

const SETTINGS: [&str; 10] = [
    "--bind",
    "127.0.0.1",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--maxmemory-policy",
    "noeviction",
    "--save",
    "",
];

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    alone(start, &Wire::plain(start)?)
}

/// Starts one that has no port but the encrypted one.
pub(super) fn start_encrypted(start: &Start<'_>) -> io::Result<String> {
    alone(start, &Wire::encrypted(start)?)
}

fn alone(start: &Start<'_>, wire: &Wire) -> io::Result<String> {
    let part = start.part(start.name, Ending::Kill)?;
    let port = wire.serve(start, &part, &[])?;
    Ok(wire.url(port))
}

/// How servers are spoken to, and speak to each other.
#[derive(Debug)]
pub(super) struct Wire {
    client: PathBuf,
    /// Without one, nothing is encrypted.
    certificate: Option<Certificate>,
}

impl Wire {
    pub(super) fn plain(start: &Start<'_>) -> io::Result<Self> {
        let client = find::beside(start.program, "redis-cli")
            .ok_or_else(|| io::Error::other("`redis-cli` is not there"))?;
        Ok(Self {
            client,
            certificate: None,
        })
    }

    pub(super) fn encrypted(start: &Start<'_>) -> io::Result<Self> {
        Ok(Self {
            certificate: Some(Certificate::of(start)?),
            ..Self::plain(start)?
        })
    }

    /// Starts a server with settings of its own, and returns the one port that it has for clients.
    pub(super) fn serve(
        &self,
        start: &Start<'_>,
        part: &Part<'_>,
        settings: &[&str],
    ) -> io::Result<u16> {
        part.serve(
            |port| {
                let mut server = part.command(start.program);
                self.listen(&mut server, port);
                server.args(SETTINGS).args(settings);
                server
            },
            |port| self.says(part, port, &["PING"], &["PONG"]),
        )
    }

    fn listen(&self, server: &mut Command, port: u16) {
        let port = port.to_string();
        let Some(certificate) = &self.certificate else {
            server.args(["--port", &port]);
            return;
        };
        server.args(["--port", "0", "--tls-port", &port]);
        // Servers show each other their certificates, and clients show none.
        server.args(["--tls-cluster", "yes", "--tls-replication", "yes"]);
        server.args(["--tls-auth-clients", "no"]);
        server.arg("--tls-cert-file").arg(&certificate.file);
        server.arg("--tls-key-file").arg(&certificate.key);
        server.arg("--tls-ca-cert-file").arg(&certificate.authority);
    }

    /// The client that comes with the server.
    pub(super) fn client(&self, part: &Part<'_>) -> Command {
        let mut client = part.command(&self.client);
        if let Some(certificate) = &self.certificate {
            client.arg("--tls");
            client.arg("--cacert").arg(&certificate.authority);
        }
        client
    }

    /// Whether the answer to a question has any of these words.
    pub(super) fn says(
        &self,
        part: &Part<'_>,
        port: u16,
        question: &[&str],
        words: &[&str],
    ) -> bool {
        let mut client = self.client(part);
        client.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        client.args(question).output().is_ok_and(|output| {
            let answer = String::from_utf8_lossy(&output.stdout);
            words.iter().any(|word| answer.contains(word))
        })
    }

    pub(super) fn url(&self, port: u16) -> String {
        let scheme = match self.certificate {
            Some(_) => "rediss",
            None => "redis",
        };
        format!("{scheme}://127.0.0.1:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_whether_it_is_encrypted() {
        let certificate = Certificate {
            authority: "authority.pem".into(),
            file: "server.pem".into(),
            key: "server.key".into(),
        };
        for (certificate, expected) in [
            (None, "redis://127.0.0.1:7000"),
            (Some(certificate), "rediss://127.0.0.1:7000"),
        ] {
            let client = PathBuf::from("redis-cli");
            let wire = Wire {
                client,
                certificate,
            };
            assert_eq!(wire.url(7000), expected);
        }
    }
}
