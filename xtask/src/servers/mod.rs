//! Private servers for the tests that need one. They are found or installed, started on free ports
//! under one temporary folder, and gone afterwards, however this process ends. A server whose
//! address stands in the environment is used instead.

mod authority;
mod cluster;
mod find;
mod folder;
mod guard;
mod install;
mod mariadb;
mod nats;
mod part;
mod pgbouncer;
mod ports;
mod postgres;
mod rabbitmq;
mod redis;

use std::{env, io, panic, path::Path, thread};

use folder::Folder;
use guard::Ending;
use part::Part;

/// A server, and how tests and people name it.
#[derive(Debug)]
struct Server {
    name: &'static str,
    variable: &'static str,
    program: &'static str,
    package: &'static str,
    /// Starts it, and says its address.
    start: fn(&Start<'_>) -> io::Result<String>,
}

/// The settings that a server is started with.
struct Start<'a> {
    name: &'static str,
    variable: &'static str,
    program: &'a Path,
    folder: &'a Folder,
    /// The addresses that are known so far.
    environment: &'a [(&'static str, String)],
}

impl<'a> Start<'a> {
    fn part(&self, name: &str, ending: Ending) -> io::Result<Part<'a>> {
        Part::create(self.folder, name, ending)
    }

    /// The value of a variable: from an earlier stage, or else from the environment of this
    /// program.
    fn known(&self, variable: &str) -> Option<String> {
        let mut known = self.environment.iter();
        let known = known.find(|(name, _)| *name == variable);
        known.map_or_else(|| given(variable), |(_, value)| Some(value.clone()))
    }
}

const POSTGRES: &str = "IDEMPOTENT_TEST_POSTGRES_URL";

/// The authority that vouches for the encrypted servers.
const AUTHORITY: &str = "IDEMPOTENT_TEST_AUTHORITY";

/// For tests that start a server of their own, to kill or to starve it: the folders of the
/// programs, as in the path.
const PROGRAMS: &str = "IDEMPOTENT_TEST_PROGRAMS";

/// The servers that run, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Servers {
    environment: Vec<(&'static str, String)>,
    _folder: Folder,
}

/// Those of one stage start side by side, and know the addresses of the stages before.
const STAGES: [&[Server]; 3] = [
    &[
        // No server, but made like one: a file that the encrypted ones need, and the clients that
        // verify them.
        Server {
            name: "authority",
            variable: AUTHORITY,
            program: "openssl",
            package: "openssl",
            start: authority::start,
        },
        // Not started either: a test starts its own, which reads the program of that test.
        Server {
            name: "prometheus",
            variable: "IDEMPOTENT_TEST_PROMETHEUS",
            program: "prometheus",
            package: "prometheus",
            start: |start| Ok(start.program.display().to_string()),
        },
        // Not started either: each test of the operators' page opens its own browser.
        Server {
            name: "chromium",
            variable: "IDEMPOTENT_TEST_CHROMIUM",
            program: "chromium",
            package: "chromium fonts-dejavu-core",
            start: |start| Ok(start.program.display().to_string()),
        },
        Server {
            name: "chromedriver",
            variable: "IDEMPOTENT_TEST_CHROMEDRIVER",
            program: "chromedriver",
            package: "chromium-driver",
            start: |start| Ok(start.program.display().to_string()),
        },
        // A test verifies an export by a script that shares no code with the library.
        Server {
            name: "python",
            variable: "IDEMPOTENT_TEST_PYTHON",
            program: "python3",
            package: "python3",
            start: |start| Ok(start.program.display().to_string()),
        },
    ],
    &[
        Server {
            name: "postgres",
            variable: POSTGRES,
            program: "postgres",
            package: "postgresql",
            start: postgres::start,
        },
        // The writes of a statement can be counted only where no other client writes.
        Server {
            name: "postgres-alone",
            variable: "IDEMPOTENT_TEST_POSTGRES_ALONE_URL",
            program: "postgres",
            package: "postgresql",
            start: postgres::start,
        },
        Server {
            name: "postgres-tls",
            variable: "IDEMPOTENT_TEST_POSTGRES_TLS_URL",
            program: "postgres",
            package: "postgresql",
            start: postgres::start_encrypted,
        },
        Server {
            name: "mariadb",
            variable: "IDEMPOTENT_TEST_MARIADB_URL",
            program: "mariadbd",
            package: "mariadb-server",
            start: mariadb::start,
        },
        Server {
            name: "mariadb-tls",
            variable: "IDEMPOTENT_TEST_MARIADB_TLS_URL",
            program: "mariadbd",
            package: "mariadb-server",
            start: mariadb::start_encrypted,
        },
        Server {
            name: "redis",
            variable: "IDEMPOTENT_TEST_REDIS_URL",
            program: "redis-server",
            package: "redis-server",
            start: redis::start,
        },
        Server {
            name: "redis-tls",
            variable: "IDEMPOTENT_TEST_REDIS_TLS_URL",
            program: "redis-server",
            package: "redis-server",
            start: redis::start_encrypted,
        },
        Server {
            name: "redis-cluster",
            variable: "IDEMPOTENT_TEST_REDIS_CLUSTER_URLS",
            program: "redis-server",
            package: "redis-server",
            start: cluster::start,
        },
        Server {
            name: "redis-cluster-tls",
            variable: "IDEMPOTENT_TEST_REDIS_CLUSTER_TLS_URLS",
            program: "redis-server",
            package: "redis-server",
            start: cluster::start_encrypted,
        },
        Server {
            name: "nats",
            variable: "IDEMPOTENT_TEST_NATS_URL",
            program: "nats-server",
            package: "nats-server",
            start: nats::start,
        },
        Server {
            name: "rabbitmq",
            variable: "IDEMPOTENT_TEST_RABBITMQ_URL",
            program: "rabbitmq-server",
            package: "rabbitmq-server",
            start: rabbitmq::start,
        },
    ],
    // In front of another one.
    &[Server {
        name: "pgbouncer",
        variable: "IDEMPOTENT_TEST_PGBOUNCER_URL",
        program: "pgbouncer",
        package: "pgbouncer",
        start: pgbouncer::start,
    }],
];

impl Servers {
    /// Starts the servers of these names, or all of them where none is given. One whose address
    /// stands in the environment is not started.
    pub(crate) fn start(names: &[&str]) -> io::Result<Self> {
        are_known(names)?;
        let stages = STAGES.map(|stage| wanted(stage, names));
        install::missing(stages.iter().flatten().copied())?;
        let folder = Folder::create()?;
        let mut environment = Vec::new();
        for stage in &stages {
            environment.extend(start_all(stage, &folder, &environment)?);
        }
        environment.push((PROGRAMS, programs()));
        Ok(Self {
            environment,
            _folder: folder,
        })
    }

    /// The places of the servers, as variables for the tests.
    pub(crate) fn environment(&self) -> &[(&'static str, String)] {
        &self.environment
    }
}

fn wanted(servers: &'static [Server], names: &[&str]) -> Vec<&'static Server> {
    servers
        .iter()
        .filter(|server| names.is_empty() || names.contains(&server.name))
        .filter(|server| given(server.variable).is_none())
        .collect()
}

fn are_known(names: &[&str]) -> io::Result<()> {
    let known: Vec<&str> = STAGES.iter().copied().flatten().map(|it| it.name).collect();
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => Err(io::Error::other(format!(
            "there is no server `{unknown}`, but {}",
            known.join(", ")
        ))),
    }
}

/// The folders of the servers' programs. Programs that come with one lie beside it.
fn programs() -> String {
    let found = STAGES
        .into_iter()
        .flatten()
        .flat_map(|server| find::program(server.program));
    let files = found.flat_map(|program| program.canonicalize());
    let mut folders: Vec<_> = files
        .filter_map(|file| Some(file.parent()?.display().to_string()))
        .collect();
    folders.sort();
    folders.dedup();
    folders.join(":")
}

/// The address that is set in the environment.
fn given(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Starts servers side by side, and waits for all of them, so that one run tells everything that is
/// wrong.
fn start_all(
    servers: &[&'static Server],
    folder: &Folder,
    environment: &[(&'static str, String)],
) -> io::Result<Vec<(&'static str, String)>> {
    let results: Vec<_> = thread::scope(|scope| {
        let starting: Vec<_> = servers
            .iter()
            .map(|server| scope.spawn(|| start_one(server, folder, environment)))
            .collect();
        starting
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect()
    });
    let mut addresses = Vec::new();
    let mut failures = Vec::new();
    for (server, result) in servers.iter().zip(results) {
        match result {
            Ok(Ok(address)) => addresses.push((server.variable, address)),
            Ok(Err(error)) => failures.push(format!("cannot start {}: {error}", server.name)),
            Err(panic) => panic::resume_unwind(panic),
        }
    }
    if failures.is_empty() {
        Ok(addresses)
    } else {
        Err(io::Error::other(failures.join("\n")))
    }
}

fn start_one(
    server: &Server,
    folder: &Folder,
    environment: &[(&'static str, String)],
) -> io::Result<String> {
    let program = find::program(server.program)
        .ok_or_else(|| io::Error::other(format!("`{}` is not there", server.program)))?;
    (server.start)(&Start {
        name: server.name,
        variable: server.variable,
        program: &program,
        folder,
        environment,
    })
}
