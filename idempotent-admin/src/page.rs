//! The page: its settings, and its routes.

use std::{fmt, sync::Arc};

use axum::{
    Router,
    extract::{
        DefaultBodyLimit, FromRequestParts as _, OriginalUri, Path, Query, Request, State,
        rejection::QueryRejection,
    },
    middleware::{Next, from_fn_with_state, map_response},
    response::Response,
    routing::get,
};
use http::StatusCode;
use idempotent_runtime::{
    Error, Idempotency, NotSettled, identity::RecordId, operate::OperationChange,
};

use crate::{
    access::{Access, Person},
    acts,
    links::Depth,
    overview::{Cache, Topics},
    replies::{file, guarded, html, moved},
    search::Search,
    token::Secret,
    views,
};

/// How many records a list shows.
const PAGE: u32 = 50;

/// A page for operators, over a handle.
///
/// # Examples
///
/// ```
/// use axum::Router;
/// use http::request::Parts;
/// use idempotent_admin::{Act, Page, Person};
/// use idempotent_runtime::Idempotency;
///
/// let idem = Idempotency::memory();
/// // The proxy in front has asked for a password, and names the person.
/// let access = |request: &Parts| {
///     let name = request.headers.get("x-forwarded-user")?.to_str().ok()?;
///     Some(Person::reader(name).with([Act::Settle]))
/// };
/// let page = Page::new(idem, access).origin("https://ops.example.com");
/// let app: Router = Router::new().nest("/admin", page.router());
/// ```
#[must_use = "it is served by its `router`"]
pub struct Page {
    pub(crate) idem: Idempotency,
    pub(crate) secret: Secret,
    pub(crate) origins: Vec<String>,
    access: Arc<dyn Access>,
    outbox: Option<Arc<dyn Topics>>,
    changes: Vec<OperationChange>,
    cache: Cache,
    has_secret: bool,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").finish_non_exhaustive()
    }
}

impl Page {
    /// Makes a page over this handle, for the people whom `access` knows.
    pub fn new(idem: Idempotency, access: impl Access) -> Self {
        Self {
            idem,
            secret: Secret::random(),
            origins: Vec::new(),
            has_secret: false,
            access: Arc::new(access),
            outbox: None,
            changes: Vec::new(),
            cache: Cache::default(),
        }
    }

    /// Shows the topics of this outbox, too.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    #[cfg_attr(
        docsrs,
        doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
    )]
    pub fn outbox<DB>(mut self, outbox: &idempotent_runtime::outbox::Outbox<DB>) -> Self
    where
        DB: idempotent_runtime::outbox::OutboxDatabase,
    {
        self.outbox = Some(Arc::new(outbox.clone()));
        self
    }

    /// Shows what this deploy changed of the operations, as
    /// [`keep_operations`](Idempotency::keep_operations) told it at the start.
    pub fn changed(mut self, changes: Vec<OperationChange>) -> Self {
        self.changes = changes;
        self
    }

    /// Sets the secret of the forms, of 32 bytes or more: all processes that serve the page have the
    /// same. Without one, a form that one process made is refused by another one, and by the same
    /// one after its restart.
    pub fn secret(mut self, secret: &[u8]) -> Self {
        self.secret = Secret::new(secret);
        self.has_secret = true;
        self
    }

    /// Names an origin under which browsers see the page, such as `https://ops.example.com`. Forms of
    /// browsers that send no `Sec-Fetch-Site` are refused unless they come from one of these.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Returns the router, for any path: `Router::new().nest("/admin", page.router())`.
    pub fn router(self) -> Router {
        if !self.has_secret {
            tracing::info!("the page draws a secret: its forms are for this process alone");
        }
        let page = Arc::new(self);
        let pages = Router::new()
            .route("/", get(first))
            .route("/overview", get(overview))
            .route("/records", get(records))
            .route("/records/{id}", get(record))
            .route("/records/{id}/{act}", get(acts::form).post(acts::done))
            .layer(DefaultBodyLimit::max(acts::MOST))
            .route_layer(from_fn_with_state(Arc::clone(&page), allowed));
        let style = || async { file("text/css; charset=utf-8", include_str!("style.css")) };
        let script = || async { file("text/javascript; charset=utf-8", include_str!("script.js")) };
        pages
            .route("/style.css", get(style))
            .route("/script.js", get(script))
            .layer(map_response(|answer: Response| async { guarded(answer) }))
            .with_state(page)
    }
}

type Shared = State<Arc<Page>>;

/// Asks for the person of a request. A path that does not exist is asked for, too.
async fn allowed(State(page): Shared, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Some(person) = page.access.person(&parts).await else {
        return html(StatusCode::FORBIDDEN, views::refused());
    };
    let mut request = Request::from_parts(parts, body);
    request.extensions_mut().insert(person);
    next.run(request).await
}

/// Leads to the overview. Where the path has no slash at its end, its last part stands before the
/// link.
async fn first(request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let path = OriginalUri::from_request_parts(&mut parts, &()).await;
    let path = path.map_or_else(|never| match never {}, |uri| uri.path().to_owned());
    let last = path.rsplit('/').next().unwrap_or_default();
    moved(&match last {
        "" => "overview".to_owned(),
        last => format!("{last}/overview"),
    })
}

async fn overview(State(page): Shared, person: axum::Extension<Person>) -> Response {
    let overview = page.cache.get(&page.idem, page.outbox.as_deref()).await;
    let operations = page.idem.operations();
    let shown = views::overview(
        &person,
        &overview,
        (&operations, &page.changes),
        page.outbox.is_some(),
    );
    html(StatusCode::OK, shown)
}

async fn records(
    State(page): Shared,
    person: axum::Extension<Person>,
    search: Result<Query<Search>, QueryRejection>,
) -> Response {
    let search = match search {
        Ok(Query(search)) => search,
        Err(why) => return refused_search(&person, &Search::default(), &why.to_string()),
    };
    let records = match search.records(&page.idem) {
        Ok(records) => records,
        Err(why) => return refused_search(&person, &search, why),
    };
    match records.page(PAGE).await {
        Ok(listed) => html(StatusCode::OK, views::list(&person, &search, &listed)),
        Err(error) if Search::is_about_it(&error) => {
            refused_search(&person, &search, &error.to_string())
        }
        Err(error) => failed(&person, Depth::Top, &error),
    }
}

fn refused_search(person: &Person, search: &Search, why: &str) -> Response {
    html(StatusCode::BAD_REQUEST, views::no_list(person, search, why))
}

async fn record(
    State(page): Shared,
    person: axum::Extension<Person>,
    Path(id): Path<String>,
) -> Response {
    let Ok(id) = id.parse::<RecordId>() else {
        return html(StatusCode::NOT_FOUND, views::missing(&person));
    };
    match page.idem.explain(id).await {
        Ok(story) => html(StatusCode::OK, views::record(&person, &story)),
        Err(Error::NotSettled {
            reason: NotSettled::UnknownKey,
            ..
        }) => html(StatusCode::NOT_FOUND, views::missing(&person)),
        Err(error) => failed(&person, Depth::Below, &error),
    }
}

fn failed(person: &Person, depth: Depth, error: &Error) -> Response {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the page of operators could not be made"
    );
    html(
        StatusCode::SERVICE_UNAVAILABLE,
        views::failed(person, depth, &error.to_string()),
    )
}
