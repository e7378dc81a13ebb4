//! The way to the server: a connection that many callers share, made when it is needed and again when it broke.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value,
    aio::{ConnectionManager, MultiplexedConnection},
};
#[cfg(feature = "redis-cluster")]
use redis::{
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo},
};
use tokio::{sync::watch, time::timeout};

use super::{failure, scripts::Text};
use crate::store::{StoreError, StoreErrorKind, idle::LONGEST_IDLE, moment::Moment};

/// Where connections come from.
#[derive(Clone)]
pub(super) enum Source {
    /// Made by us, each store its own.
    Server(Client),
    /// Made by us, to the nodes of a cluster.
    #[cfg(feature = "redis-cluster")]
    Cluster {
        client: Box<ClusterClient>,
        /// The nodes that it begins with; empty where only the client knows them.
        places: Arc<[Client]>,
    },
    /// The application's, and all that there is.
    Given(Line),
}

/// A connection. Clones are the same one.
#[derive(Clone)]
pub(super) enum Line {
    Own(MultiplexedConnection),
    Managed(ConnectionManager),
    #[cfg(feature = "redis-cluster")]
    Cluster(ClusterConnection),
}

/// How long what may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    pub(super) answer: Duration,
}

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

/// Whether what is asked may be done twice, where nobody knows whether it was done.
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

/// The connection, and the making of one.
#[derive(Default)]
struct Open {
    last: Mutex<Last>,
}

/// A connection with its number; or why there is none, which is nothing where that took too long.
type Made = Result<(Line, u64), Option<RedisError>>;

const LATE: &str = "no connection was made in time";

/// The connection that was made last.
#[derive(Default)]
struct Last {
    /// With the moment when it was asked for last. All nodes of a cluster lie idle together, because records are spread evenly.
    line: Option<(Line, Moment)>,
    /// How many there were: whoever finds one broken must not close the one after it.
    number: u64,
    silence: Silence,
    making: Option<watch::Receiver<Option<Made>>>,
}

/// How long callers waited in vain since the last answer.
#[derive(Clone, Copy, Default)]
struct Silence {
    waited: Duration,
    until: Option<Instant>,
}

/// Asks over a connection. Where callers give up on its answers, as a heartbeat does after a third of the lease and a tiered store far
/// sooner, the next one asks over another: this one may be silent for good, and nobody would ever wait for as long as an answer may take.
/// Of the connections to a cluster, the answer of any node counts.
struct Asking<'a> {
    open: &'a Open,
    number: u64,
    not_silent: Duration,
    since: Instant,
    is_answered: bool,
}

/// For how long nobody thinks of a connection that it is silent, all callers together: far longer than Redis takes for an answer.
const NOT_SILENT: Duration = Duration::from_millis(100);

/// The same of connections to the nodes of a cluster, which are all made again together.
const NO_NODE_SILENT: Duration = Duration::from_secs(1);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut last = self.open.last();
        if last.number != self.number {
            return;
        }
        if self.is_answered {
            last.silence = Silence::default();
        } else if last.silence.goes_on(self.since) >= self.not_silent {
            last.line = None;
        }
    }
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

    /// The same server, over a connection of its own; `None` where connections are not ours to make.
    pub(super) fn another(&self) -> Option<Self> {
        match &self.source {
            Source::Given(_) => None,
            source => Some(Self::new(source.clone(), self.limits)),
        }
    }

    /// Runs a script over one key: by its digest, and with its text where the server does not know it, or not any more.
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

    /// Sends a command that may be done twice to a node; of a cluster, to the one that the command itself asks for unless one is
    /// named.
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

    /// Whether it leads to one server, over a connection that this store made: then what only reads reaches that server. Over a
    /// connection of the application's it may be answered from a cache, and in a cluster by a replica.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.source, Source::Server(_))
    }

    /// Whether it is the application's connection, and so is how long it may lie idle.
    fn is_given(&self) -> bool {
        matches!(self.source, Source::Given(_))
    }

    /// What every server says of itself; the replicas of a cluster, too, where `replicas` asks for those that may be primaries
    /// tomorrow.
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

    /// Asks over the connection, and where that broke, over a new one if what is asked `repeats`. A server closes connections
    /// without asking, as when it is started anew, and whoever uses one next learns of it. What took too long is not asked again.
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

    /// Asks over the connection, within the time that an answer may take; a connection that broke is not used again.
    async fn on_line_once(
        &self,
        doing: &'static str,
        ask: impl AsyncFnOnce(&mut Line) -> RedisResult<Value>,
    ) -> Result<RedisResult<Value>, StoreError> {
        let (mut line, number) = self.line(Moment::now(), doing).await?;
        let mut asking = Asking {
            open: &self.open,
            number,
            not_silent: if self.is_to_cluster() {
                NO_NODE_SILENT
            } else {
                NOT_SILENT
            },
            since: Instant::now(),
            is_answered: false,
        };
        let answer = timeout(self.limits.answer, ask(&mut line)).await;
        asking.is_answered = true;
        drop(asking);
        let is_over = match &answer {
            Ok(answer) => answer.as_ref().is_err_and(failure::ends_the_connection),
            Err(_) => true,
        };
        if is_over {
            self.open.end(number);
        }
        answer.map_err(|late| StoreError::new(StoreErrorKind::Unavailable, doing).with_source(late))
    }

    /// The connection, with its number. One caller makes it for all who come meanwhile; and makes another one where it was asked
    /// for too long ago. It is made in a task of its own, so that a call which nobody polls keeps nobody waiting, and one that goes away
    /// sooner than it is made leaves it to the next.
    async fn line(&self, now: Moment, doing: &'static str) -> Result<(Line, u64), StoreError> {
        let is_given = self.is_given();
        let line = self.open.line_or_making(now, is_given, || self.make(now));
        let mut making = match line {
            Ok(line) => return Ok(line),
            Err(making) => making,
        };
        let made = timeout(self.limits.connect, making.wait_for(Option::is_some)).await;
        // Where the runtime ended that it was being made in, the next one makes it.
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

impl Open {
    /// The connection, or else its making, which begins where nobody is at it.
    fn line_or_making(
        &self,
        now: Moment,
        is_given: bool,
        make: impl FnOnce() -> watch::Receiver<Option<Made>>,
    ) -> Result<(Line, u64), watch::Receiver<Option<Made>>> {
        let mut last = self.last();
        if let Some(line) = last.line(now, is_given) {
            return Ok(line);
        }
        let is_stopped = |made: &mut watch::Receiver<_>| made.has_changed().is_err();
        last.making.take_if(is_stopped);
        Err(last.making.get_or_insert_with(make).clone())
    }

    fn end_making(&self, line: Result<Line, Option<RedisError>>, now: Moment) -> Made {
        let mut last = self.last();
        last.making = None;
        line.map(|line| last.begin(line, now))
    }

    /// Forgets the connection of this number.
    fn end(&self, number: u64) {
        let mut last = self.last();
        if last.number == number {
            last.line = None;
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Last {
    /// The connection, with its number, unless there is none, or it was asked for too long ago.
    fn line(&mut self, now: Moment, is_given: bool) -> Option<(Line, u64)> {
        match &mut self.line {
            Some((line, used)) if now.since(*used) < LONGEST_IDLE || is_given => {
                *used = now;
                Some((line.clone(), self.number))
            }
            old => {
                *old = None;
                None
            }
        }
    }

    fn begin(&mut self, line: Line, now: Moment) -> (Line, u64) {
        self.line = Some((line.clone(), now));
        self.number += 1;
        self.silence = Silence::default();
        (line, self.number)
    }
}

impl Silence {
    /// One more caller waited in vain, from then until now: how long all of them did, not counting any moment twice.
    fn goes_on(&mut self, since: Instant) -> Duration {
        let now = Instant::now();
        let uncounted = self.until.map_or(since, |until| until.max(since));
        let waited = self.waited + now.saturating_duration_since(uncounted);
        self.waited = waited.max(now.saturating_duration_since(since));
        self.until = Some(now);
        self.waited
    }
}

impl Source {
    async fn connect(&self, limits: Limits) -> RedisResult<Line> {
        match self {
            Source::Server(client) => own(client, limits).await.map(Line::Own),
            #[cfg(feature = "redis-cluster")]
            Source::Cluster { client, places } => match client.get_async_connection().await {
                Ok(connection) => Ok(Line::Cluster(connection)),
                Err(error) => Err(refusal(places, limits).await.unwrap_or(error)),
            },
            Source::Given(line) => Ok(line.clone()),
        }
    }
}

/// How many commands may stand in line for a connection: more than there are calls. Where a call has to wait for room there, and nobody
/// polls it, the room that it gets at last is nobody's.
const LONGEST_LINE: usize = 1 << 16;

/// Makes a connection to one server.
async fn own(client: &Client, limits: Limits) -> RedisResult<MultiplexedConnection> {
    // Answers are limited elsewhere, because what is late must also end the connection.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(limits.connect))
        .set_response_timeout(None)
        .set_pipeline_buffer_size(LONGEST_LINE);
    let making = client.get_multiplexed_async_connection_with_config(&config);
    making.await
}

/// Why a node refuses whoever connects, whenever they try. Of a cluster the driver tells that as text, so each node is asked.
#[cfg(feature = "redis-cluster")]
async fn refusal(places: &[Client], limits: Limits) -> Option<RedisError> {
    for place in places {
        if let Err(error) = own(place, limits).await
            && failure::kind_while_opening(&error) == StoreErrorKind::Configuration
        {
            return Some(error);
        }
    }
    None
}

impl Line {
    async fn send(&mut self, command: &Cmd, node: &Node) -> RedisResult<Value> {
        match (self, node) {
            (Line::Own(connection), _) => command.query_async(connection).await,
            (Line::Managed(connection), _) => command.query_async(connection).await,
            #[cfg(feature = "redis-cluster")]
            (Line::Cluster(connection), Node::Only) => command.query_async(connection).await,
            #[cfg(feature = "redis-cluster")]
            (Line::Cluster(connection), Node::At { host, port }) => {
                let (host, port) = (host.clone(), *port);
                let routing =
                    RoutingInfo::SingleNode(SingleNodeRoutingInfo::ByAddress { host, port });
                connection
                    .route_command(command.clone(), routing)
                    .await?
                    .extract_error()
            }
        }
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

impl fmt::Debug for Link {
    /// Without the source, which knows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use redis::aio::ConnectionManagerConfig;

    use super::*;

    const LIMITS: Limits = Limits {
        connect: Duration::from_secs(10),
        answer: Duration::from_secs(10),
    };

    fn client() -> Client {
        let url = std::env::var("IDEMPOTENT_TEST_REDIS_URL");
        let url = url.expect("`cargo xtask test` says where Redis is");
        Client::open(url).expect("a URL")
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn a_connection_that_has_lain_idle_for_long_is_not_used_again() {
        let link = Link::new(Source::Server(client()), LIMITS);
        let begun = Moment::now();
        let mut numbers = Vec::new();
        for second in [0, 179, 358, 538, 540] {
            let now = begun.plus(Duration::from_secs(second));
            let (_, number) = link.line(now, "testing").await.expect("a connection");
            numbers.push(number);
        }
        assert_eq!(numbers, [1, 1, 1, 2, 2]);

        let (line, _) = link.line(begun, "testing").await.expect("a connection");
        let given = Link::new(Source::Given(line), LIMITS);
        for second in [0, 3600] {
            let now = begun.plus(Duration::from_secs(second));
            let (_, number) = given.line(now, "testing").await.expect("a connection");
            assert_eq!(number, 1, "it is not ours to replace");
        }
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn a_call_that_nobody_polls_while_it_connects_keeps_no_other_one_waiting() {
        let link = Link::new(Source::Server(client()), LIMITS);
        let now = Moment::now();
        let mut alone = Box::pin(link.line(now, "testing"));
        let mut context = Context::from_waker(Waker::noop());
        assert!(alone.as_mut().poll(&mut context).is_pending());

        let (_, number) = link.line(now, "testing").await.expect("a connection");

        assert_eq!(number, 1);
        let (_, number) = alone.await.expect("a connection");
        assert_eq!(number, 1, "it is the same");
    }

    /// Nobody who has less patience than it takes would ever get one.
    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn a_connection_that_its_caller_does_not_wait_for_is_made_for_the_next() {
        let link = Link::new(Source::Server(client()), LIMITS);
        let now = Moment::now();
        let mut leaves = Box::pin(link.line(now, "testing"));
        let mut context = Context::from_waker(Waker::noop());
        assert!(leaves.as_mut().poll(&mut context).is_pending());
        drop(leaves);

        let made = async {
            while link.open.last().line(now, false).is_none() {
                tokio::task::yield_now().await;
            }
        };
        let made = timeout(LIMITS.connect, made).await;
        made.expect("it is made without anybody who waits");
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn a_connection_that_is_silent_is_left_by_those_who_give_up_on_it_soon() {
        let link = Link::new(Source::Server(client()), LIMITS);
        let list = format!("idempotent-{:032x}", rand::random::<u128>());
        // The server answers nothing behind it.
        let mut pops = redis::cmd("BLPOP");
        let pops = pops.arg(&list).arg(0);
        let soon = NOT_SILENT / 4;
        let popped = timeout(soon, link.send(pops, &Node::Only, "testing")).await;
        assert!(popped.is_err(), "nobody pushes");

        let pings = redis::cmd("PING");
        let answered = async {
            while timeout(soon, link.send(&pings, &Node::Only, "testing"))
                .await
                .is_err()
            {}
        };
        let answered = timeout(LIMITS.answer * 2, answered).await;
        answered.expect("another one is made");
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn a_connection_that_answers_is_kept_by_those_who_give_up_on_it() {
        let link = Link::new(Source::Server(client()), LIMITS);
        let pings = redis::cmd("PING");
        let (_, first) = link.line(Moment::now(), "testing").await.expect("one");
        for _ in 0..2 {
            let mut gives_up = Box::pin(link.send(&pings, &Node::Only, "testing"));
            let mut context = Context::from_waker(Waker::noop());
            let polled = gives_up.as_mut().poll(&mut context);
            drop(gives_up);
            assert!(polled.is_pending());
            let_time_pass(&link);
            let answer = link.send(&pings, &Node::Only, "testing").await;
            answer.expect("an answer");
        }
        let (_, last) = link.line(Moment::now(), "testing").await.expect("one");
        assert_eq!(last, first);
    }

    /// Since a caller gave up on the last connection.
    fn let_time_pass(link: &Link) {
        let mut last = link.open.last();
        assert!(last.silence.until.is_some(), "it owes an answer");
        last.silence.waited += NOT_SILENT;
    }

    /// A connection of the application's has a time limit of its own, which the driver tells as a failure of the connection.
    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn what_took_too_long_for_the_driver_is_not_asked_again() {
        let short = ConnectionManagerConfig::new();
        let short = short.set_response_timeout(Some(Duration::from_millis(500)));
        let manager = client().get_connection_manager_with_config(short).await;
        let manager = manager.expect("a connection");
        let link = Link::new(Source::Given(Line::Managed(manager)), LIMITS);
        let list = format!("idempotent-{:032x}", rand::random::<u128>());
        let of_list = |name: &str| redis::cmd(name).arg(&list).clone();

        // The server answers once somebody pushes.
        let mut pops = of_list("BLPOP");
        let answer = link.send(pops.arg(0), &Node::Only, "testing").await;

        let kind = answer.expect_err("nobody pushes").kind();
        assert_eq!(kind, StoreErrorKind::Unavailable);
        let mut other = client().get_multiplexed_async_connection().await;
        let other = other.as_mut().expect("a connection");
        let pushed = of_list("RPUSH")
            .arg(&["one", "two"])
            .query_async(other)
            .await;
        let () = pushed.expect("an answer");
        // Behind whatever was asked over this connection before.
        let left = link.send(&of_list("LLEN"), &Node::Only, "testing").await;
        assert_eq!(left.expect("an answer"), Value::Int(1), "popped once");
        let deleted = of_list("DEL").query_async(other).await;
        let () = deleted.expect("an answer");
    }
}
