//! Sets up the layer.

mod checks;

use std::sync::{Arc, Once};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, request};

use self::checks::{check, check_bounds, check_refusals};
use crate::{
    error::Error,
    handle::Idempotency,
    http::{
        grpc,
        in_flight_limit::{Bounds, InFlightLimit},
        problem::{Kind, Problem, Problems},
        routes::Pattern,
        rules::{Protocol, Rules},
        scope::{self, Requester, Scope},
        seal::Seal,
        store_failures::StoreFailures,
        unkept::{self, Unkept},
    },
    identity::RecordId,
    key::KeyPart,
    observe::FrontEndEvent,
    store::StoreError,
    value::opaque,
    value::setters,
};

/// Sets up the layer: made by [`IdempotencyLayer::builder`](super::IdempotencyLayer::builder).
///
/// It has no `build` until it knows the callers: by [`scope`](Self::scope), or by the explicit word
/// that all share one space of keys, [`shared_by_all_callers`](Self::shared_by_all_callers).
///
/// ```compile_fail,E0599
/// use idempotent_runtime::{Idempotency, http::IdempotencyLayer};
///
/// let layer = IdempotencyLayer::builder(Idempotency::memory()).build();
/// ```
///
/// ```
/// use idempotent_runtime::{Idempotency, http::IdempotencyLayer};
///
/// let layer = IdempotencyLayer::builder(Idempotency::memory())
///     .shared_by_all_callers()
///     .build()?;
/// # Ok::<(), idempotent_runtime::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct LayerBuilder<S> {
    scope: S,
    said: Said,
}

/// The layer does not know yet how to tell callers apart.
#[derive(Clone, Copy, Debug)]
pub struct MissingScope(());

/// The settings made so far, except for the scope.
#[derive(Debug)]
struct Said {
    handle: Idempotency,
    name: Arc<str>,
    rules: Rules,
    routes: Vec<Route>,
    problems: Problems,
    unscoped_status: StatusCode,
    seal: Option<Arc<dyn Seal>>,
    bounds: Bounds,
}

struct Route {
    pattern: Option<Pattern>,
    change: Box<dyn FnOnce(Rules) -> Rules + Send>,
}

opaque!(Route, |it| pattern = it.pattern);

/// The state that the layer and all its services share.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) handle: Idempotency,
    pub(crate) name: Arc<str>,
    pub(crate) scope: Scope,
    /// Whether operators were told of a request without a caller.
    told_of_nobody: Once,
    pub(crate) rules: Arc<Rules>,
    pub(crate) routes: Vec<(Pattern, Arc<Rules>)>,
    pub(crate) problems: Problems,
    pub(crate) unscoped_status: StatusCode,
    pub(crate) seal: Option<Arc<dyn Seal>>,
    pub(crate) bounds: Bounds,
    pub(crate) in_flight: InFlightLimit,
    pub(crate) unkept: Unkept,
    pub(crate) store_failures: StoreFailures,
}

impl LayerBuilder<MissingScope> {
    pub(crate) fn new(handle: Idempotency) -> Self {
        Self {
            scope: MissingScope(()),
            said: Said {
                handle,
                name: "http".into(),
                rules: Rules::default(),
                routes: Vec::new(),
                problems: Problems::default(),
                unscoped_status: StatusCode::BAD_REQUEST,
                seal: None,
                bounds: Bounds::NONE,
            },
        }
    }
}

impl<S> LayerBuilder<S> {
    /// Tells callers apart: no caller meets the key or the response of another one.
    ///
    /// `kind` says which kind of caller is meant, such as `"customer"`. It belongs to the identity
    /// of a call, so customer 7 and merchant 7 are two callers, and two layers of one kind and one
    /// [name](Self::name) mean the same callers. A kind that changes makes all keys new.
    ///
    /// `caller` names the caller of a request. The layer asks it after the layers outside it have
    /// run, so an authentication layer outside can leave what it found out in the request's
    /// extensions. Name the principal there and never its credentials: a token that was rotated is
    /// another token, and a retry with it is still the same caller's. If a user acts for several
    /// organisations, take both.
    ///
    /// If it answers `None`, the request is refused with
    /// [`unscoped_status`](Self::unscoped_status), and the handler does not run. The first time, a
    /// warning says so: a layer outside of the authentication refuses every request.
    ///
    /// # Examples
    ///
    /// ```
    /// use idempotent_runtime::{Idempotency, http::IdempotencyLayer};
    ///
    /// #[derive(Clone)]
    /// struct User { id: u64, organisation: u64 }
    ///
    /// let layer = IdempotencyLayer::builder(Idempotency::memory())
    ///     .scope("member", |request| {
    ///         let user = request.extensions.get::<User>()?;
    ///         Some((user.organisation, user.id))
    ///     })
    ///     .build()?;
    /// # Ok::<(), idempotent_runtime::Error>(())
    /// ```
    pub fn scope<K>(
        self,
        kind: &str,
        caller: impl Fn(&request::Parts) -> Option<K> + Send + Sync + 'static,
    ) -> LayerBuilder<Scope>
    where
        K: KeyPart + Send + Sync + 'static,
    {
        self.scoped(Scope::of_kind(kind, caller))
    }

    /// Says that all callers share one space of keys. A caller that learns or guesses a key then
    /// gets another one's response: right if there is one caller, or responses hold no secret.
    pub fn shared_by_all_callers(self) -> LayerBuilder<Scope> {
        self.scoped(Scope::shared())
    }

    fn scoped(self, scope: Scope) -> LayerBuilder<Scope> {
        LayerBuilder {
            scope,
            said: self.said,
        }
    }

    setters! {
        /// Sets the status that refuses a request whose caller is not known; 400 by default. 401
        /// belongs to a service that also says, in `WWW-Authenticate`, how to authenticate.
        unscoped_status(it, status: StatusCode) { it.said.unscoped_status = status }

        /// Sets what holds for every route that has no rules of its own; [`Rules::ietf`] by
        /// default.
        rules(it, rules: Rules) { it.said.rules = rules }
    }

    /// Changes the rules for the requests whose path matches `pattern`: `/orders/{id}/payments`, or
    /// `/admin/{*rest}` for all that begins so. The first match counts.
    ///
    /// It matches as in a router of axum, also with slashes too many: `/orders//payments`, whose
    /// `id` is empty, and `/admin//users`. The whole path is compared as sent, not decoded.
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

    setters! {
        /// Sets how refusals are told.
        problems(it, problems: Problems) { it.said.problems = problems }

        /// Seals responses on their way to the store: for encryption at rest.
        seal(it, seal: impl Seal + 'static) { it.said.seal = Some(Arc::new(seal)) }

        /// Sets the name of the operation in records, logs and metrics; `http` by default. Services
        /// that share a store need a name each, unless one is to answer the other's retries.
        ///
        /// Layers of one name share a space of keys for each kind of caller: see
        /// [`scope`](Self::scope).
        ///
        /// A name that changes makes all keys new, so a layer in use keeps the one it has.
        name(it, name: &str) { it.said.name = name.into() }

        /// Sets how many handlers may run at once for requests with a key, at least one; more get
        /// 503. Unlike a limit outside of the layer, it counts handlers whose clients are gone,
        /// too.
        ///
        /// A request whose body is kept takes the place of a handler: while the body arrives
        /// ([`Rules::body_timeout`]), and while the request waits for an earlier one
        /// ([`Rules::in_flight`]). If all places are taken, a request whose body is not there yet
        /// is refused with 503, whatever its key, and one that would wait is refused as if it might
        /// not.
        ///
        /// A handler gives its place back when it has answered. A response that still streams takes
        /// none: see [`max_streams`](Self::max_streams).
        max_in_flight(it, handlers: usize) { it.said.bounds.in_all = handlers }

        /// Sets how many responses to requests with a key may stream at once, at least one. While
        /// there are as many, no handler begins: its request gets 503. A client that does not read
        /// holds its place for [`Rules::stream_timeout`] at most.
        max_streams(it, responses: usize) { it.said.bounds.streams = responses }

        /// Sets how many handlers, kept requests and streams may be of one caller, at least one;
        /// more are refused with 429. It counts what runs in this process.
        max_in_flight_per_caller(it, handlers: usize) { it.said.bounds.of_one_caller = handlers }
    }
}

impl LayerBuilder<Scope> {
    /// The settings, if they are sound.
    pub(super) fn finish(self) -> Result<Settings, Error> {
        let Self { scope, said } = self;
        if said.name.trim().is_empty() {
            return Err(Error::InvalidPolicy(
                "the name of the layer is empty: give it a stable one, such as `shop`",
            ));
        }
        check_bounds(said.bounds)?;
        if !scope.is_sound() {
            return Err(Error::InvalidPolicy(
                "the kind of callers is empty: say which it is, such as `customer`",
            ));
        }
        check_refusals(&[said.unscoped_status])?;
        check(&said.handle, &said.rules)?;
        let mut routes = Vec::with_capacity(said.routes.len());
        for route in said.routes {
            let pattern = route.pattern.ok_or(Error::InvalidPolicy(
                "the path of a route begins with `/`, and what changes in it is a whole segment: `/orders/{id}`, or `/admin/{*rest}` at the end",
            ))?;
            let rules = (route.change)(said.rules.clone());
            check(&said.handle, &rules)?;
            routes.push((pattern, Arc::new(rules)));
        }
        Ok(Settings {
            handle: said.handle,
            name: said.name,
            scope,
            told_of_nobody: Once::new(),
            rules: Arc::new(said.rules),
            routes,
            problems: said.problems,
            unscoped_status: said.unscoped_status,
            seal: said.seal,
            bounds: said.bounds,
            in_flight: InFlightLimit::default(),
            unkept: Unkept::default(),
            store_failures: StoreFailures::default(),
        })
    }
}

impl Settings {
    /// The caller of this request. Operators are told of the first request without one: perhaps the
    /// layer stands outside of the authentication.
    pub(crate) fn caller(&self, head: &request::Parts) -> Result<Option<Requester>, Problem> {
        self.scope.caller(head).map_err(|scope::Unknown| {
            self.told_of_nobody.call_once(|| {
                tracing::warn!(
                    operation = &*self.name,
                    "a request is refused because its caller is unknown: if unknown callers are never let in, put the authentication outside of the layer"
                );
            });
            Problem::new(Kind::ScopeUnresolved).with_status(self.unscoped_status)
        })
    }

    /// Tells operators and observers of a request that the layer refuses by itself. A request that
    /// names no caller has no record.
    pub(crate) fn tell_refused(&self, problem: &Problem, record: Option<RecordId>) {
        let (operation, code) = (&*self.name, problem.kind().code());
        match problem.kind() {
            Kind::ScopeUnresolved => tracing::info!(operation, code, "a request is refused"),
            _ => tracing::debug!(operation, code, "a request is refused"),
        }
        let event = FrontEndEvent::new("http", operation, &code, record);
        self.handle.tell_refused(&event);
    }

    /// Tells operators that a store has failed a request of this route.
    pub(crate) fn tell_store_failed(&self, route: &unkept::Route, cause: &StoreError) {
        let now = self.handle.timer().now();
        self.store_failures.tell(&self.name, route, cause, now);
    }

    /// Makes the response that refuses a request of that method and those header fields, in the
    /// protocol of its rules and with its key where they say so.
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
        // A value that is no key, or does not count as one, is not repeated.
        if !matches!(
            problem.kind(),
            Kind::KeyInvalid | Kind::NotSupported | Kind::TooEarly
        ) {
            rules.repeat_key(request, &mut response);
        }
        response
    }

    /// The rules for a request to `path`.
    pub(crate) fn rules(&self, path: &str) -> &Arc<Rules> {
        let mut routes = self.routes.iter();
        let route = routes.find(|(pattern, _)| pattern.matches(path));
        route.map_or(&self.rules, |(_, rules)| rules)
    }
}
