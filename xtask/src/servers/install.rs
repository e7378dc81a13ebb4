//! Installs what is missing, on Debian and its relatives.

use std::{
    io,
    process::{Command, Stdio},
};

use super::{Server, find};

/// Installs the packages of the servers whose program is not there.
///
/// # Errors
///
/// If that needs a password, or does not succeed, the error says what to do instead.
pub(super) fn missing<'a>(servers: impl Iterator<Item = &'a Server> + Clone) -> io::Result<()> {
    let is_missing = |server: &&Server| find::program(server.program).is_none();
    let servers: Vec<&Server> = servers.filter(is_missing).collect();
    if servers.is_empty() {
        return Ok(());
    }
    let rights = Rights::found();
    let command = command_line(&servers, rights);
    if rights != Rights::Asked && install(&command)? && !servers.iter().any(is_missing) {
        return Ok(());
    }
    Err(io::Error::other(advice(&servers, &command)))
}

/// By what right packages can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    Root,
    Sudo,
    /// Only a person can do it.
    Asked,
}

impl Rights {
    fn found() -> Self {
        if is_root() {
            Self::Root
        } else if succeeds(Command::new("sudo").args(["-n", "true"])) {
            Self::Sudo
        } else {
            Self::Asked
        }
    }
}

/// Whether this process may do everything, which servers refuse to run with.
pub(super) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}

fn succeeds(command: &mut Command) -> bool {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A shell reads the addresses on the standard output, so nothing else may be said there.
fn install(command: &str) -> io::Result<bool> {
    eprintln!("installing: {command}");
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", command]).stdin(Stdio::null());
    Ok(shell.stdout(io::stderr()).status()?.success())
}

/// The lists of packages may be missing or old, and one that cannot be fetched need not be the one
/// that matters.
fn command_line(servers: &[&Server], rights: Rights) -> String {
    let sudo = match rights {
        Rights::Root => "",
        Rights::Sudo | Rights::Asked => "sudo ",
    };
    let packages = each_once(servers.iter().map(|server| server.package));
    format!(
        "{sudo}apt-get update; {sudo}env DEBIAN_FRONTEND=noninteractive \
         apt-get install --yes --no-install-recommends {}",
        packages.join(" ")
    )
}

fn advice(servers: &[&Server], command: &str) -> String {
    let programs = each_once(servers.iter().map(|server| server.program));
    let programs: Vec<String> = programs.iter().map(|name| format!("`{name}`")).collect();
    let variables: Vec<&str> = servers.iter().map(|server| server.variable).collect();
    format!(
        "servers are missing ({}): run\n\n    {command}\n\nor say where they are, in {}",
        programs.join(", "),
        variables.join(", ")
    )
}

fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::STAGES;
    use std::env;

    fn named(name: &str) -> &'static Server {
        let mut all = STAGES.into_iter().flatten();
        let found = all.find(|server| server.name == name);
        found.expect("there is one of that name")
    }

    #[test]
    fn installs_each_package_once_and_only_what_is_missing() {
        let all: Vec<&Server> = STAGES.into_iter().flatten().collect();
        assert_eq!(
            command_line(&all, Rights::Root),
            "apt-get update; env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
             openssl prometheus chromium fonts-dejavu-core chromium-driver python3 postgresql \
             mariadb-server redis-server nats-server rabbitmq-server pgbouncer"
        );
        assert_eq!(
            command_line(&[named("mariadb")], Rights::Asked),
            "sudo apt-get update; sudo env DEBIAN_FRONTEND=noninteractive \
             apt-get install --yes --no-install-recommends mariadb-server"
        );
    }

    #[test]
    fn the_advice_names_the_command_and_the_variables() {
        let advice = advice(&[named("redis"), named("redis-cluster")], "the command");
        for words in [
            "(`redis-server`)",
            "the command",
            "IDEMPOTENT_TEST_REDIS_URL, IDEMPOTENT_TEST_REDIS_CLUSTER_URLS",
        ] {
            assert!(advice.contains(words), "{advice}");
        }
    }

    /// The output of a process cannot be seen from inside, so this test runs itself once more.
    #[test]
    fn what_installing_says_is_not_taken_for_addresses() {
        const INSIDE: &str = "IDEMPOTENT_XTASK_INSIDE";
        if env::var_os(INSIDE).is_some() {
            assert!(install("echo unpacking").expect("a shell"));
            return;
        }
        let test = concat!(
            module_path!(),
            "::what_installing_says_is_not_taken_for_addresses"
        );
        let (_, test) = test.split_once("::").expect("the crate comes first");
        let output = Command::new(env::current_exe().expect("it runs"))
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .expect("it runs again");
        let (said, aside) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{said}{aside}");
        for words in ["installing: echo unpacking", "unpacking"] {
            assert!(aside.lines().any(|line| line == words), "{aside}");
        }
        assert!(said.contains("1 passed"), "{said}");
        assert!(!said.contains("unpacking"), "{said}");
    }
}
