//! Sets up the layer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Once},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, request, response};
use http_body::Body as HttpBody;

use crate::{
    duration::IntoDuration,
    error::Error,
    handle::Idempotency,
    http::{
        drain::{Bounds, Door},
        grpc,
        layer::IdempotencyLayer,
        limit::{NewKeys, Rate},
        problem::{Kind, Problem, Problems},
        routes::Pattern,
        rules::{Protocol, Rules},
        scope::{Caller, Scope},
        seal::Seal,
        unkept::Unkept,
    },
    identity::RecordId,
    observe::{Answer, Answered},
    request::{check_durations, check_expired, check_lease},
};

/// Sets up the layer: made by [`IdempotencyLayer::builder`].
///
/// It has no `build` before it is said who calls: by [`Scope::of`], or by the explicit word that all callers share one space of
/// keys, [`Scope::shared_by_all_callers`].
///
/// ```compile_fail,E0599
/// use idempotent_runtime::{Idempotency, http::IdempotencyLayer};
///
/// let layer = IdempotencyLayer::builder(Idempotency::memory()).build();
/// ```
///
/// ```
/// use idempotent_runtime::{Idempotency, http::{IdempotencyLayer, Scope}};
///
/// let layer = IdempotencyLayer::builder(Idempotency::memory())
///     .scope(Scope::shared_by_all_callers())
///     .build()?;
/// # Ok::<(), idempotent_runtime::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<S> {
    scope: S,
    said: Said,
}

/// It is not said yet who calls.
#[derive(Clone, Copy, Debug)]
pub struct Unscoped(());

/// What is said so far of everything else.
#[derive(Debug)]
struct Said {
    handle: Idempotency,
    name: Arc<str>,
    rules: Rules,
    routes: Vec<Route>,
    problems: Problems,
    seal: Option<Arc<dyn Seal>>,
    bounds: Bounds,
    new_keys: Option<Result<Rate, Error>>,
}

struct Route {
    pattern: Option<Pattern>,
    change: Box<dyn FnOnce(Rules) -> Rules + Send>,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Route")
            .field("pattern", &self.pattern)
            .finish_non_exhaustive()
    }
}

/// What the layer and all its services share.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) handle: Idempotency,
    pub(crate) name: Arc<str>,
    pub(crate) scope: Scope,
    /// Whether operators were told that a request came from nobody.
    told_of_nobody: Once,
    pub(crate) rules: Arc<Rules>,
    pub(crate) routes: Vec<(Pattern, Arc<Rules>)>,
    pub(crate) problems: Problems,
    pub(crate) seal: Option<Arc<dyn Seal>>,
    pub(crate) bounds: Bounds,
    pub(crate) new_keys: Option<NewKeys>,
    pub(crate) door: Door,
    pub(crate) unkept: Unkept,
}

impl Builder<Unscoped> {
    pub(crate) fn new(handle: Idempotency) -> Self {
        Self {
            scope: Unscoped(()),
            said: Said {
                handle,
                name: "http".into(),
                rules: Rules::default(),
                routes: Vec::new(),
                problems: Problems::default(),
                seal: None,
                bounds: Bounds::NONE,
                new_keys: None,
            },
        }
    }
}

impl<S> Builder<S> {
    /// Says who calls.
    pub fn scope(self, scope: Scope) -> Builder<Scope> {
        Builder {
            scope,
            said: self.said,
        }
    }

    /// Sets what holds for every route that has no rules of its own; [`Rules::ietf`] by default.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.said.rules = rules;
        self
    }

    /// Changes the rules for the requests whose path matches `pattern`: `/orders/{id}/payments`, or `/admin/{*rest}` for all
    /// that begins so. The first pattern that matches counts.
    ///
    /// A pattern matches the paths that a router of axum hands to a route of that pattern, also with slashes too many:
    /// `/orders//payments`, whose `id` is empty, and `/admin//users`. It is compared with the whole path as the client sent it, without decoding
    /// what is percent-encoded.
    pub fn route(
        mut self,
        pattern: &str,
        change: impl FnOnce(Rules) -> Rules + Send + 'static,
    ) -> Self {
        self.said.routes.push(Route {
            pattern: Pattern::parse(pattern),
            change: Box::new(change),
        });
        self
    }

    /// Sets how refusals are told, and the problems of this library that handlers answer with (feature `axum`).
    pub fn problems(mut self, problems: Problems) -> Self {
        self.said.problems = problems;
        self
    }

    /// Seals responses on their way to the store: for encryption at rest.
    pub fn seal(mut self, seal: impl Seal + 'static) -> Self {
        self.said.seal = Some(Arc::new(seal));
        self
    }

    /// Sets the name of the operation in records, logs and metrics; `http` by default. Two services that share a store each
    /// need their own, unless one is to answer the retries of requests that the other carried out.
    ///
    /// So does each *layer*, also in one service, unless its callers are those of the other one. Layers of one name have one space of keys:
    /// where one tells customers apart and the other merchants, and both are numbers, customer 7 and merchant 7 are one caller, whose key
    /// is refused on the other layer, or is even answered with what the other one was given. Building a second layer of a name over one
    /// handle warns once of that, unless their scopes are clones of one [`Scope`], or callers share one space of keys in one of them. Two
    /// handles over one store know nothing of each other.
    ///
    /// A name that changes makes all keys new, so a layer in use keeps the one it has.
    pub fn name(mut self, name: &str) -> Self {
        self.said.name = name.into();
        self
    }

    /// Sets how many handlers may run at once for requests with a key, at least one; more are refused with 503. Unlike a limit outside of the
    /// layer, it counts handlers whose clients have gone away, too.
    ///
    /// The body of a request that is still arriving takes the place of a handler, so slow uploads
    /// are bounded, too ([`Rules::body_timeout`]). Where all places are taken, a request whose body
    /// is not there yet is refused with 503, whatever its key.
    pub fn max_in_flight(mut self, handlers: usize) -> Self {
        self.said.bounds.in_all = handlers;
        self
    }

    /// Sets how many of these may be of one caller, at least one; more are refused with 429. It counts what runs in this process.
    pub fn max_in_flight_per_caller(mut self, handlers: usize) -> Self {
        self.said.bounds.of_one_caller = handlers;
        self
    }

    /// Sets how many new keys one caller may bring: so many at once, and as many again in each period, evenly. A handler that would
    /// have to run for another one does not, and the request is refused with 429, and with `Retry-After` until the next one may
    /// come. There is no bound unless this sets one.
    ///
    /// A key leaves a record for its time to live, so this bounds how many of a caller's stand at a time: about as many as it may
    /// bring in that time, by each process. What is counted is a handler that runs, except for one that takes over from another that
    /// vanished. A key that was freed, by 503, say, is a new one again.
    ///
    /// Nothing is written for a key that is one too many. A request takes the place of a new key before it is claimed, from when its
    /// body is asked for, and gives it back where its handler does not run after all: because the key was known, or as many
    /// handlers run as may, or its client went away before. So requests of one moment claim no more than may run, and a retry that
    /// waits for the first request ([`Rules::in_flight`]) holds a place as long as it waits. Where all places are taken, requests
    /// whose key is known are answered nevertheless, by a replay or as without this bound: the store is asked first whether it
    /// knows the key. Where it does not answer that, the key is claimed to find it out, and freed if it was new. What was claimed
    /// and freed so, or because as many handlers run as may, leaves a record that is not counted.
    ///
    /// It counts in this process, in bounded memory: beyond 65 536 callers with new keys within one period, those who brought the
    /// fewest begin anew. Where all callers share one space of keys, they are one caller here.
    pub fn max_new_keys_per_caller(mut self, keys: u32, per: impl IntoDuration) -> Self {
        self.said.new_keys = Some(Rate::new(keys, per));
        self
    }
}

impl Builder<Scope> {
    /// Finishes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] when a pattern, the name, a bound, a duration or the status of a refusal or of a rejection cannot be
    /// one, or when rules ask for what there is not: `on_crash` with `Reconcile`, `on_expired` with `Refuse` over a handle that
    /// keeps nothing, or gRPC without the header fields that make a response one.
    pub fn build(self) -> Result<IdempotencyLayer, Error> {
        let Self { scope, said } = self;
        if said.name.trim().is_empty() {
            return Err(Error::InvalidPolicy(
                "the name of the layer is empty: give it a stable one, such as `shop`",
            ));
        }
        check_bounds(said.bounds)?;
        check_refusals(&[scope.refusal()])?;
        check(&said.handle, &said.rules)?;
        let new_keys = said.new_keys.transpose()?;
        let mut routes = Vec::with_capacity(said.routes.len());
        for route in said.routes {
            let pattern = route.pattern.ok_or(Error::InvalidPolicy(
                "the path of a route begins with `/`, and what changes in it is a whole segment: `/orders/{id}`, or `/admin/{*rest}` at the end",
            ))?;
            let rules = (route.change)(said.rules.clone());
            check(&said.handle, &rules)?;
            routes.push((pattern, Arc::new(rules)));
        }
        Ok(IdempotencyLayer::new(Settings {
            handle: said.handle,
            name: said.name,
            scope,
            told_of_nobody: Once::new(),
            rules: Arc::new(said.rules),
            routes,
            problems: said.problems,
            seal: said.seal,
            bounds: said.bounds,
            new_keys: new_keys.map(NewKeys::new),
            door: Door::default(),
            unkept: Unkept::default(),
        }))
    }
}

fn check(handle: &Idempotency, rules: &Rules) -> Result<(), Error> {
    if let Some(mistake) = &rules.mistake {
        return Err(mistake.clone());
    }
    check_refusals(&[rules.mismatch_status, rules.in_flight_status])?;
    if rules.protocol == Protocol::GrpcUnary && !grpc::is_kept_by(&rules.headers) {
        return Err(Error::InvalidPolicy(
            "a response of gRPC is none without `content-type`, `grpc-status`, `grpc-message`, `grpc-status-details-bin` and `grpc-encoding`: keep them",
        ));
    }
    let defaults = handle.defaults();
    let (ttl, lease) = (
        rules.ttl.unwrap_or(defaults.ttl),
        rules.lease.unwrap_or(defaults.lease),
    );
    check_durations(ttl, lease, handle.timer())?;
    check_lease(rules.ttl, rules.lease)?;
    check_expired(rules.on_expired, defaults.keep)
}

/// Nobody means a service that answers every request with a refusal.
fn check_bounds(bounds: Bounds) -> Result<(), Error> {
    if bounds.in_all == 0 || bounds.of_one_caller == 0 {
        return Err(Error::InvalidPolicy(
            "at least one handler has to run at a time: leave `max_in_flight` and `max_in_flight_per_caller` out where there is to be no bound",
        ));
    }
    Ok(())
}

/// A client takes anything else for what came of its request.
fn check_refusals(statuses: &[StatusCode]) -> Result<(), Error> {
    let refuses = |status: &StatusCode| status.is_client_error() || status.is_server_error();
    if statuses.iter().all(refuses) {
        return Ok(());
    }
    Err(Error::InvalidPolicy(
        "a refusal has a status from 400 to 599: see `mismatch_status`, `in_flight_status` and `Scope::refuse_with`",
    ))
}

impl Settings {
    /// Who sends this request. The first one that comes from nobody is what a layer looks like which stands outside of the
    /// authentication, so operators are told once.
    pub(crate) fn caller(&self, head: &request::Parts) -> Result<Option<Caller>, Problem> {
        self.scope.caller(head).inspect_err(|_| {
            self.told_of_nobody.call_once(|| {
                tracing::warn!(
                    operation = &*self.name,
                    "a request is refused because nobody can tell who sends it: where none are let in, put the authentication outside of the layer"
                );
            });
        })
    }

    /// Tells operators and observers of a request that the layer refuses by itself. Of one that
    /// cannot be said to be anybody's there is no record to name.
    pub(crate) fn tell_refused(&self, problem: &Problem, id: Option<RecordId>, elapsed: Duration) {
        let (operation, code) = (&*self.name, problem.kind().code());
        match problem.kind() {
            Kind::ScopeUnresolved => tracing::info!(operation, code, "a request is refused"),
            _ => tracing::debug!(operation, code, "a request is refused"),
        }
        self.handle.observers().answered(&Answered {
            operation,
            id,
            answer: Answer::Refused,
            elapsed,
        });
    }

    /// Makes the response that refuses a request of that method and those header fields, in the protocol of its rules and with
    /// its key where they say so.
    pub(crate) fn refuse(
        &self,
        problem: &Problem,
        rules: &Rules,
        method: &Method,
        request: &HeaderMap,
    ) -> Response<Bytes> {
        let mut response = match rules.protocol {
            Protocol::Http => self.problems.respond(problem, method, request),
            Protocol::GrpcUnary => grpc::respond(problem),
        };
        // What is no key, or does not count as one, is not repeated.
        if !matches!(
            problem.kind(),
            Kind::KeyInvalid | Kind::NotSupported | Kind::TooEarly
        ) {
            rules.repeat_key(request, &mut response);
        }
        response
    }

    /// Tells a problem that a handler has answered with, in the same way, and gives its body: see [`Problems::retell`]. Handlers of
    /// gRPC answer in their own protocol. Where the renderer panics, the response stays as it is: the handler has answered, and nothing
    /// is to happen again for a want of words.
    pub(crate) fn retell(
        &self,
        head: &mut response::Parts,
        body: &impl HttpBody,
        rules: &Rules,
        request: &HeaderMap,
    ) -> Option<Bytes> {
        if rules.protocol != Protocol::Http {
            return None;
        }
        let retelling = || self.problems.retell(head, body, request);
        catch_unwind(AssertUnwindSafe(retelling)).unwrap_or_else(|_| {
            tracing::error!(operation = &*self.name, "a renderer panicked");
            None
        })
    }

    /// What holds for a request to `path`.
    pub(crate) fn rules(&self, path: &str) -> &Arc<Rules> {
        let route = self
            .routes
            .iter()
            .find(|(pattern, _)| pattern.matches(path));
        route.map_or(&self.rules, |(_, rules)| rules)
    }
}
