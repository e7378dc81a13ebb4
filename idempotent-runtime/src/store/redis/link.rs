//! The way to the server: a connection that many callers share, made when it is needed and again
//! when it broke.

mod open;
mod source;

use std::{borrow::Cow, sync::Arc};

#[cfg(feature = "redis-cluster")]
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::{sync::watch, time::timeout};

use self::open::{Asking, Made, NO_NODE_SILENT, NOT_SILENT, Open};
pub(super) use self::source::{Limits, Line, Source};
use super::{failure, scripts::Text};
use crate::{
    store::{StoreError, StoreErrorKind, moment::Moment},
    value::opaque,
};

const LATE: &str = "no connection was made in time";

/// One of the servers that records are spread over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Only,
    #[cfg(feature = "redis-cluster")]
    At {
        host: String,
        port: u16,
    },
}

/// Whether a request may be done twice, if it is unknown whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    Safely,
    Never,
}

/// Whether the replicas of a cluster are asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Replicas {
    Too,
    Not,
}

/// Sends commands.
pub(super) struct Link {
    source: Source,
    limits: Limits,
    open: Arc<Open>,
}

impl Link {
    pub(super) fn new(source: Source, limits: Limits) -> Self {
        Self {
            source,
            limits,
            open: Arc::default(),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// The same server, over a connection of its own; `None` if connections are not ours to make.
    pub(super) fn another(&self) -> Option<Self> {
        match &self.source {
            Source::Given(_) => None,
            source => Some(Self::new(source.clone(), self.limits)),
        }
    }

    /// Runs a script over one key: by its digest, and with its text if the server does not know it,
    /// or not any more.
    pub(super) async fn run(
        &self,
        script: &Text,
        key: &str,
        arguments: &[Cow<'_, [u8]>],
        doing: &'static str,
    ) -> Result<Value, StoreError> {
        let command = |name, script: &str| {
            let mut command = redis::cmd(name);
            command.arg(script).arg(1).arg(key);
            for argument in arguments {
                command.arg(&**argument);
            }
            command
        };
        let answer = self
            .try_send(
                &command("EVALSHA", &script.digest),
                &Node::Only,
                script.repeats,
                doing,
            )
            .await?;
        let answer = match answer {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.try_send(
                    &command("EVAL", &script.code),
                    &Node::Only,
                    script.repeats,
                    doing,
                )
                .await?
            }
            answer => answer,
        };
        answer.map_err(|error| failure::of(error, doing))
    }

    /// Sends a command that may be done twice to a node. In a cluster it goes to the node that is
    /// named, or else to the one that the command itself asks for.
    pub(super) async fn send(
        &self,
        command: &Cmd,
        node: &Node,
        doing: &'static str,
    ) -> Result<Value, StoreError> {
        self.try_send(command, node, Repeats::Safely, doing)
            .await?
            .map_err(|error| failure::of(error, doing))
    }

    /// The servers that records are spread over.
    pub(super) async fn nodes(&self, doing: &'static str) -> Result<Vec<Node>, StoreError> {
        #[cfg(feature = "redis-cluster")]
        if self.is_to_cluster() {
            let answers = self
                .each(
                    &redis::cmd("PING"),
                    MultipleNodeRoutingInfo::AllMasters,
                    doing,
                )
                .await?;
            return answers
                .into_iter()
                .map(|(address, _)| node(&address, doing))
                .collect();
        }
        let _ = doing;
        Ok(vec![Node::Only])
    }

    /// Whether it leads to the nodes of a cluster.
    pub(super) fn is_to_cluster(&self) -> bool {
        match &self.source {
            #[cfg(feature = "redis-cluster")]
            Source::Cluster { .. } | Source::Given(Line::Cluster(_)) => true,
            _ => false,
        }
    }

    /// Whether it leads to one server, over a connection that this store made: then a command that
    /// only reads reaches that server. Over a connection of the application's it may be answered
    /// from a cache, and in a cluster by a replica.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.source, Source::Server(_))
    }

    /// Whether it is the application's connection: then the application also decides how long it
    /// may lie idle.
    fn is_given(&self) -> bool {
        matches!(self.source, Source::Given(_))
    }

    /// How every server describes itself; the replicas of a cluster, too, if `replicas` asks for
    /// those that may be primaries tomorrow.
    pub(super) async fn info(
        &self,
        replicas: Replicas,
        doing: &'static str,
    ) -> Result<Vec<String>, StoreError> {
        let info = redis::cmd("INFO");
        #[cfg(feature = "redis-cluster")]
        if self.is_to_cluster() {
            let nodes = match replicas {
                Replicas::Too => MultipleNodeRoutingInfo::AllNodes,
                Replicas::Not => MultipleNodeRoutingInfo::AllMasters,
            };
            let answers = self.each(&info, nodes, doing).await?;
            return answers
                .into_iter()
                .map(|(_, said)| text(said, doing))
                .collect();
        }
        #[cfg(not(feature = "redis-cluster"))]
        let _ = replicas;
        let said = self.send(&info, &Node::Only, doing).await?;
        Ok(vec![text(said, doing)?])
    }

    /// The answers of many nodes, with the addresses from which they came.
    #[cfg(feature = "redis-cluster")]
    async fn each(
        &self,
        command: &Cmd,
        nodes: MultipleNodeRoutingInfo,
        doing: &'static str,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        let routing = RoutingInfo::MultiNode((nodes, None));
        let answer = self
            .on_line(Repeats::Safely, doing, async |line| match line {
                Line::Cluster(cluster) => {
                    cluster
                        .route_command(command.clone(), routing.clone())
                        .await
                }
                Line::Own(_) | Line::Managed(_) => Ok(Value::Nil),
            })
            .await?
            .map_err(|error| failure::of(error, doing))?;
        let Value::Map(answers) = answer else {
            return Err(StoreError::new(StoreErrorKind::Other, doing)
                .with_source("the nodes did not answer one by one"));
        };
        let mut each = Vec::with_capacity(answers.len());
        for (address, answer) in answers {
            let answer = answer
                .extract_error()
                .map_err(|error| failure::of(error, doing))?;
            each.push((text(address, doing)?, answer));
        }
        Ok(each)
    }

    async fn try_send(
        &self,
        command: &Cmd,
        node: &Node,
        repeats: Repeats,
        doing: &'static str,
    ) -> Result<RedisResult<Value>, StoreError> {
        self.on_line(repeats, doing, async |line| line.send(command, node).await)
            .await
    }

    /// Asks over the connection, and if that broke, over a new one if the request `repeats`. A
    /// server closes connections without asking, as when it is started anew, and the next use of
    /// one fails. A request that took too long is not asked again.
    async fn on_line(
        &self,
        repeats: Repeats,
        doing: &'static str,
        ask: impl AsyncFnOnce(&mut Line) -> RedisResult<Value> + Copy,
    ) -> Result<RedisResult<Value>, StoreError> {
        match self.on_line_once(doing, ask).await? {
            Err(error) if failure::broke_off(&error) && repeats == Repeats::Safely => {
                self.on_line_once(doing, ask).await
            }
            answer => Ok(answer),
        }
    }

    /// Asks over the connection, within the time that an answer may take; a connection that broke
    /// is not used again.
    async fn on_line_once(
        &self,
        doing: &'static str,
        ask: impl AsyncFnOnce(&mut Line) -> RedisResult<Value>,
    ) -> Result<RedisResult<Value>, StoreError> {
        let (mut line, number) = self.line(Moment::now(), doing).await?;
        let not_silent = match self.is_to_cluster() {
            true => NO_NODE_SILENT,
            false => NOT_SILENT,
        };
        let asking = Asking::over(&self.open, number, not_silent);
        let answer = timeout(self.limits.answer, ask(&mut line)).await;
        asking.end();
        let is_over = match &answer {
            Ok(answer) => answer.as_ref().is_err_and(failure::ends_the_connection),
            Err(_) => true,
        };
        if is_over {
            self.open.end(number);
        }
        answer.map_err(|late| StoreError::new(StoreErrorKind::Unavailable, doing).with_source(late))
    }

    /// The connection, with its number. One caller makes it for all who come meanwhile; and makes
    /// another one if it was asked for too long ago. It is made in a task of its own. So a call
    /// that is not polled keeps no other call waiting, and one that goes away before it is made
    /// leaves it to the next.
    async fn line(&self, now: Moment, doing: &'static str) -> Result<(Line, u64), StoreError> {
        let is_given = self.is_given();
        let line = self.open.line_or_making(now, is_given, || self.make(now));
        let mut making = match line {
            Ok(line) => return Ok(line),
            Err(making) => making,
        };
        let made = timeout(self.limits.connect, making.wait_for(Option::is_some)).await;
        // If the runtime ended that it was being made in, the next one makes it.
        let made = made.map_or(None, |told| told.ok().and_then(|made| made.clone()));
        made.unwrap_or(Err(None)).map_err(|error| match error {
            Some(error) => failure::while_opening(error, doing),
            None => StoreError::new(StoreErrorKind::Unavailable, doing).with_source(LATE),
        })
    }

    /// Makes a connection for all who come meanwhile, and tells them.
    fn make(&self, now: Moment) -> watch::Receiver<Option<Made>> {
        let (tell, made) = watch::channel(None);
        let (open, source, limits) = (Arc::clone(&self.open), self.source.clone(), self.limits);
        tokio::spawn(async move {
            let line = timeout(limits.connect, source.connect(limits)).await;
            let line = line.map_or(Err(None), |line| line.map_err(Some));
            tell.send_replace(Some(open.end_making(line, now)));
        });
        made
    }
}

#[cfg(feature = "redis-cluster")]
fn node(address: &str, doing: &'static str) -> Result<Node, StoreError> {
    let parsed = address
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    match parsed {
        Some((host, port)) => Ok(Node::At { host, port }),
        None => {
            Err(StoreError::new(StoreErrorKind::Other, doing).with_source("a node has no address"))
        }
    }
}

fn text(value: Value, doing: &'static str) -> Result<String, StoreError> {
    redis::from_redis_value(value).map_err(|error| {
        StoreError::new(StoreErrorKind::Configuration, doing).with_source(RedisError::from(error))
    })
}

// Without the source, which knows the password.
opaque!(Link, |it| limits = it.limits);

#[cfg(test)]
mod tests;
