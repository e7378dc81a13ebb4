//! RabbitMQ, without its service: a node and a port mapper of its own.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::Command,
};

use super::{Ending, Start, find, part::Part, ports};

/// The header that a client begins with, with its version of the protocol.
const HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// A node that waits does not spin, and other hosts do not reach it.
const ERLANG: &str = "+sbwt none +sbwtdcpu none +sbwtdio none \
                      -kernel inet_dist_use_interface {127,0,0,1}";

/// Disk and memory are the business of the machine.
const SETTINGS: &str = "disk_free_limit.absolute = 50MB\nlog.console.level = warning\n";

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    let part = start.part(start.name, Ending::Kill)?;
    let settings = part.write("rabbitmq.conf", SETTINGS)?;
    let mapper = port_mapper(&part)?;
    // The program in the path is a link to a script that only root and `rabbitmq` may run.
    let program = find::beside(start.program, "rabbitmq-server")
        .ok_or_else(|| io::Error::other("`rabbitmq-server` is not there"))?;
    let port = part.serve(
        |port| node(&part, &program, &settings, mapper, port),
        |port| greets(port).unwrap_or(false),
    )?;
    Ok(format!("amqp://guest:guest@127.0.0.1:{port}/%2f"))
}

/// Starts the program that a node registers with. A node that finds none starts one that outlives
/// it.
fn port_mapper(part: &Part<'_>) -> io::Result<u16> {
    let program = find::program("epmd").ok_or_else(|| io::Error::other("`epmd` is not there"))?;
    part.serve(
        |port| {
            let mut mapper = part.command(&program);
            mapper.args(["-address", "127.0.0.1", "-port", &port.to_string()]);
            mapper
        },
        |port| ports::connect(port).is_ok(),
    )
}

fn node(part: &Part<'_>, program: &Path, settings: &Path, mapper: u16, port: u16) -> Command {
    let data = part.path("data");
    let paths: [(&str, PathBuf); 7] = [
        ("RABBITMQ_MNESIA_BASE", data.clone()),
        ("RABBITMQ_LOG_BASE", data),
        ("RABBITMQ_PID_FILE", part.path("pid")),
        ("RABBITMQ_CONFIG_FILE", settings.to_owned()),
        // Files that are not there, in place of those of the machine.
        ("RABBITMQ_CONF_ENV_FILE", part.path("env")),
        ("RABBITMQ_ADVANCED_CONFIG_FILE", part.path("advanced")),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", part.path("plugins")),
    ];
    let mut node = part.command(program);
    node.envs(paths);
    node.env("RABBITMQ_NODENAME", format!("test-{port}@localhost"));
    node.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1");
    node.env("RABBITMQ_NODE_PORT", port.to_string());
    node.env("RABBITMQ_DIST_PORT", ports::above(port).to_string());
    node.env("RABBITMQ_LOGS", "-");
    node.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", ERLANG);
    node.env("ERL_EPMD_ADDRESS", "127.0.0.1");
    node.env("ERL_EPMD_PORT", mapper.to_string());
    node
}

/// It answers with a method, on the connection's own channel.
fn greets(port: u16) -> io::Result<bool> {
    let mut connection = ports::connect(port)?;
    connection.write_all(HEADER)?;
    let mut greeting = [0; 3];
    connection.read_exact(&mut greeting)?;
    Ok(greeting == [1, 0, 0])
}

#[cfg(test)]
mod tests {
    use std::{fs, thread, time::Duration};

    use super::*;
    use crate::servers::folder::Folder;

    #[test]
    #[ignore = "needs a server"]
    fn a_node_that_ran_leaves_no_process() {
        let folder = Folder::create().expect("a folder");
        let program = find::program("rabbitmq-server").expect("it is installed");
        let start_it = Start {
            name: "rabbitmq",
            variable: "",
            program: &program,
            folder: &folder,
            environment: &[],
        };
        start(&start_it).expect("it starts");
        let home = folder.path("rabbitmq").display().to_string();
        // The port mapper, the node, and the helper that the node starts.
        assert!(at_home_in(&home) >= 3);

        drop(folder);

        // A helper ends as soon as it finds its node gone.
        for _ in 0..500 {
            if at_home_in(&home) == 0 {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("{} processes are left", at_home_in(&home));
    }

    /// How many processes have this home, whatever group they are in.
    fn at_home_in(folder: &str) -> usize {
        let wanted = format!("HOME={folder}");
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let environments = processes.flat_map(|process| fs::read(process.path().join("environ")));
        let at_home = environments.filter(|environment| {
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == wanted.as_bytes())
        });
        at_home.count()
    }
}
