//! A broker of this program's own, which can be restarted.

use std::{
    future::Future,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use idempotent_runtime::outbox::Publisher;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::plan::QUEUE;
use crate::{
    Failure,
    broker::Broker,
    nats::Nats,
    publishers::{nats::NatsPublisher, rabbitmq::RabbitMqPublisher},
    rabbitmq::RabbitMq,
    server::find,
};

/// More than a broker takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long one try to reach it may take. Another program may have taken its port, and a broker
/// that just starts may leave a question without an answer.
const TRY: Duration = Duration::from_secs(5);

/// How often it is started on other ports.
const STARTS: u32 = 3;

/// A node that waits does not spin, and other hosts do not reach it.
const ERLANG: &str =
    "+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}";

/// A broker that this program can start, and its publisher.
pub(super) trait Local: Broker {
    type Publisher: Publisher;

    fn publisher(url: &str) -> impl Future<Output = Result<Self::Publisher, Failure>> + Send;

    /// Its processes, on these ports of this host. The folder keeps the broker's data.
    fn processes(folder: &Path, ports: Ports) -> Result<Vec<Command>, Failure>;

    fn url(ports: Ports) -> String;
}

pub(super) type Ports = [u16; 3];

impl Local for Nats {
    type Publisher = NatsPublisher;

    async fn publisher(url: &str) -> Result<NatsPublisher, Failure> {
        NatsPublisher::connect(url).await
    }

    fn processes(folder: &Path, [port, ..]: Ports) -> Result<Vec<Command>, Failure> {
        let mut server = Command::new(Self::PROGRAM);
        server.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
        server.arg("--jetstream").arg("--store_dir").arg(folder);
        Ok(vec![server])
    }

    fn url([port, ..]: Ports) -> String {
        format!("nats://127.0.0.1:{port}")
    }
}

impl Local for RabbitMq {
    type Publisher = RabbitMqPublisher;

    async fn publisher(url: &str) -> Result<RabbitMqPublisher, Failure> {
        Ok(RabbitMqPublisher::new(url, ""))
    }

    /// A node, and the port mapper that it registers with.
    fn processes(folder: &Path, ports: Ports) -> Result<Vec<Command>, Failure> {
        let [port, cluster_port, mapper_port] = ports.map(|port| port.to_string());
        let mut mapper = Command::new("epmd");
        mapper.args(["-address", "127.0.0.1", "-port", &mapper_port]);
        // The program in the path is a link to a script that only root and `rabbitmq` may run.
        let wrapper = find(Self::PROGRAM).and_then(|program| program.canonicalize().ok());
        let program = wrapper.map(|it| it.with_file_name(Self::PROGRAM));
        let mut node = Command::new(program.unwrap_or_else(|| Self::PROGRAM.into()));
        node.env("HOME", folder)
            .env("RABBITMQ_MNESIA_BASE", folder.join("data"))
            .env("RABBITMQ_LOG_BASE", folder.join("logs"))
            .env("RABBITMQ_PID_FILE", folder.join("pid"))
            // Files that are not there, in place of those of the machine.
            .env("RABBITMQ_CONFIG_FILE", folder.join("none"))
            .env("RABBITMQ_CONF_ENV_FILE", folder.join("none"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", folder.join("none"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("none"))
            .env(
                "RABBITMQ_NODENAME",
                format!("two-services-{port}@localhost"),
            )
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port)
            .env("RABBITMQ_DIST_PORT", cluster_port)
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", ERLANG)
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", mapper_port);
        Ok(vec![mapper, node])
    }

    fn url([port, ..]: Ports) -> String {
        format!("amqp://guest:guest@127.0.0.1:{port}/%2f")
    }
}

/// A broker that runs for as long as this lives.
pub(super) struct Server {
    ports: Ports,
    folder: PathBuf,
    running: Vec<Child>,
}

impl Server {
    /// Starts it, and makes its queue. Other programs may take its ports before it does.
    pub(super) async fn start<B: Local>(folder: &Path) -> Result<Self, Failure> {
        let mut failed = None;
        for start in 0..STARTS {
            let mut server = Self {
                ports: free_ports()?,
                folder: folder.join(format!("broker-{start}")),
                running: Vec::new(),
            };
            match server.serve::<B>().await {
                Ok(()) => return Ok(server),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| "it was not started".into()))
    }

    pub(super) fn url<B: Local>(&self) -> String {
        B::url(self.ports)
    }

    /// Kills it, and starts it again with what it had stored.
    pub(super) async fn restart<B: Local>(&mut self) -> Result<(), Failure> {
        self.kill();
        for process in &mut self.running {
            process.wait().await?;
        }
        self.running.clear();
        self.serve::<B>().await
    }

    async fn serve<B: Local>(&mut self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.folder)?;
        for mut process in B::processes(&self.folder, self.ports)? {
            let process = process.process_group(0).stdin(Stdio::null());
            let process = process.stdout(Stdio::null()).stderr(Stdio::null());
            self.running.push(process.spawn()?);
        }
        let url = self.url::<B>();
        let is_there = async {
            while !matches!(
                timeout(TRY, B::connect_in_order(&url, QUEUE)).await,
                Ok(Ok(_))
            ) {
                for process in &mut self.running {
                    if let Some(ended) = process.try_wait()? {
                        return Err(format!("{} ended: {ended}", B::NAME).into());
                    }
                }
                sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        };
        let started = timeout(PATIENCE, is_there).await;
        started.map_err(|_| format!("{} did not start", B::NAME))?
    }

    /// Each process is a group, with all that it has started.
    fn kill(&self) {
        let ids = self.running.iter().filter_map(Child::id);
        for id in ids.filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_ports() -> Result<Ports, Failure> {
    let any = || TcpListener::bind("127.0.0.1:0");
    let held = [any()?, any()?, any()?];
    let mut ports = [0; 3];
    for (port, held) in ports.iter_mut().zip(&held) {
        *port = held.local_addr()?.port();
    }
    Ok(ports)
}
