//! A private authority, and the certificate that it has signed for the servers that speak TLS.

use std::{io, path::PathBuf};

use super::{AUTHORITY, Ending, Start};

/// Names stand on the command line. The nodes of a cluster are each other's clients.
const EXTENSIONS: &str = "\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = critical, CA:FALSE
subjectAltName = IP:127.0.0.1, DNS:localhost
extendedKeyUsage = serverAuth, clientAuth
";

/// The commands of `openssl`, one after another. Each also says where the extensions stand.
const STEPS: [&str; 3] = [
    "req -x509 -days 2 -subj /CN=authority -extensions authority -newkey ec \
     -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority.key -out authority.pem -config extensions",
    "req -new -subj /CN=localhost -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
     -keyout server.key -out server.request -config extensions",
    "x509 -req -days 2 -in server.request -CA authority.pem -CAkey authority.key -CAcreateserial \
     -out server.pem -extensions server -extfile extensions",
];

/// Says where the authority's own certificate lies. The certificate that it has signed lies beside
/// it.
pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    let part = start.part(start.name, Ending::Kill)?;
    part.write("extensions", EXTENSIONS)?;
    for step in STEPS {
        let mut openssl = part.command(start.program);
        part.run(openssl.args(step.split_whitespace()))?;
    }
    Ok(part.path("authority.pem").display().to_string())
}

/// The files of a server that speaks TLS.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    /// The authority that vouches for the server.
    pub(super) authority: PathBuf,
    pub(super) file: PathBuf,
    pub(super) key: PathBuf,
}

impl Certificate {
    /// Finds the one of this run.
    pub(super) fn of(start: &Start<'_>) -> io::Result<Self> {
        let authority = start.known(AUTHORITY).map(PathBuf::from);
        let authority = authority.ok_or_else(|| io::Error::other("nobody signs certificates"))?;
        let beside = |name: &str| {
            let file = authority.with_file_name(name);
            let missing = format!(
                "`{}` is not there: where `{AUTHORITY}` is set, `{}` must be, too",
                file.display(),
                start.variable
            );
            file.is_file()
                .then_some(file)
                .ok_or_else(|| io::Error::other(missing))
        };
        Ok(Self {
            file: beside("server.pem")?,
            key: beside("server.key")?,
            authority,
        })
    }
}
