//! The routes of the page, and the pages that only read.

use std::sync::Arc;

use axum::{
    Router,
    extract::{
        DefaultBodyLimit, FromRequestParts as _, OriginalUri, Path, Query, Request, State,
        rejection::QueryRejection,
    },
    middleware::{Next, from_fn_with_state, map_response},
    response::Response,
    routing::{any, get, post},
};
use http::StatusCode;
use idempotent_runtime::{Error, NotSettled, identity::RecordId, operate::Records};

use crate::{
    access::Person,
    acts, bulk,
    chart::CallChart,
    limit::in_time,
    links::Depth,
    outbox_acts,
    page::Page,
    proposals,
    replies::{file, guarded, html, moved},
    reveal,
    search::Search,
    trail::Line,
    views,
};

impl Page {
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
            .route("/records/{id}/reveal", post(reveal::revealed))
            .route("/records/{id}/{act}", get(acts::form).post(acts::done))
            .route("/bulk", post(bulk::form))
            .route("/bulk/{act}", post(bulk::done))
            .route("/outbox", get(outbox_acts::list))
            .route(
                "/outbox/{act}",
                get(outbox_acts::form).post(outbox_acts::done),
            )
            .route("/approvals", get(proposals::list))
            .route("/approvals/{number}", post(proposals::approve))
            // No fallback, which could not be nested below a prefix with a parameter.
            .route("/{*path}", any(no_page))
            .layer(DefaultBodyLimit::max(acts::MOST))
            .layer(from_fn_with_state(Arc::clone(&page), allowed));
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
    let person = page.access.person(&parts).await;
    let Some(person) = person.filter(Person::has_name) else {
        return html(StatusCode::FORBIDDEN, views::refused());
    };
    let verification = page.verification.as_ref().map(|last| last());
    let person = person.sees(verification);
    let mut request = Request::from_parts(parts, body);
    request.extensions_mut().insert(person);
    next.run(request).await
}

async fn no_page() -> Response {
    html(StatusCode::NOT_FOUND, views::no_page())
}

/// Leads to the overview. If the path has no slash at its end, the link begins with its last part.
async fn first(request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let path = OriginalUri::from_request_parts(&mut parts, &()).await;
    let path = path.map_or_else(|never| match never {}, |uri| uri.path().to_owned());
    let last = path.rsplit('/').next().unwrap_or_default();
    // With a dot before it, no name of a path is taken for that of a server.
    moved(&match last {
        "" => "./overview".to_owned(),
        last => format!("./{last}/overview"),
    })
}

async fn overview(State(page): Shared, person: axum::Extension<Person>) -> Response {
    let overview = page.cache.get(&page.idem, page.outbox.as_ref()).await;
    let operations = page.idem.operations();
    let hour = page.chart.as_ref().map(CallChart::hour);
    let shown = views::overview(
        &person,
        &overview,
        (&operations, &page.changes),
        (page.outbox.is_some(), page.trail.is_some(), hour.as_deref()),
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
    match listed(&search, &records).await {
        Ok(listed) => html(StatusCode::OK, views::list(&person, &search, &listed)),
        Err(error) if Search::is_about_it(&error) => {
            refused_search(&person, &search, &error.to_string())
        }
        Err(error) => failed(&person, Depth::Top, &error),
    }
}

/// A page of a list. The first one has a count, too.
async fn listed(search: &Search, records: &Records<'_>) -> Result<views::Listed, Error> {
    let count = async {
        match search.after.is_empty() {
            true => records.count().await.map(Some),
            false => Ok(None),
        }
    };
    let (page, count) =
        in_time(async { tokio::try_join!(records.page(search.shown()), count) }).await?;
    Ok(views::Listed { page, count })
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
        return html(StatusCode::NOT_FOUND, views::missing(&person, Depth::Below));
    };
    match in_time(page.idem.explain(id)).await {
        Ok(story) => {
            let token = reveal::token(&page, &person, &story.row);
            let timeline = timeline(&page, id).await;
            let shown = views::record(&person, &story, (token.as_deref(), timeline));
            html(StatusCode::OK, shown)
        }
        Err(Error::NotSettled {
            reason: NotSettled::UnknownKey,
            ..
        }) => html(StatusCode::NOT_FOUND, views::missing(&person, Depth::Below)),
        Err(error) => failed(&person, Depth::Below, &error),
    }
}

/// The entries of a record, where there is a trail.
async fn timeline(page: &Page, id: RecordId) -> Option<Result<Vec<Line>, String>> {
    let timeline = in_time(page.trail.as_ref()?.timeline(id)).await;
    Some(timeline.map_err(|error| error.to_string()))
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
