//! A store with records, and the page over it.

use axum::{Router, body::Body};
use http::{Request, StatusCode, header::HeaderMap, request::Parts};
use idempotent_admin::{Page, Person};
use idempotent_audit::Audit;
use idempotent_runtime::{Error, Idempotency, identity::RecordId, step, store::SqliteStore};
use sqlx::SqlitePool;
use tempfile::TempDir;
use tower::ServiceExt as _;

/// An answer of the page.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn has(&self, text: &str) {
        assert!(self.text.contains(text), "{text} is not in {}", self.text);
    }

    #[track_caller]
    pub(crate) fn lacks(&self, text: &str) {
        assert!(!self.text.contains(text), "{text} is in {}", self.text);
    }

    /// The first link whose text or address has this in it.
    #[track_caller]
    pub(crate) fn link(&self, part: &str) -> String {
        let mut links = self.text.split("<a ").skip(1);
        let found = links.find(|link| {
            link.split("</a>")
                .next()
                .is_some_and(|it| it.contains(part))
        });
        let link = found.unwrap_or_else(|| panic!("{part}: {}", self.text));
        let (_, rest) = link.split_once("href=\"").expect("an address");
        let (address, _) = rest.split_once('"').expect("its end");
        address.replace("&amp;", "&")
    }
}

/// Those who say their name may read.
pub(crate) fn by_header(request: &Parts) -> Option<Person> {
    let name = request.headers.get("x-user")?.to_str().ok()?;
    Some(Person::reader(name))
}

pub(crate) fn app(idem: &Idempotency) -> Router {
    Router::new().nest("/ops", Page::new(idem.clone(), by_header).router())
}

pub(crate) async fn get(app: &Router, path: &str) -> Answer {
    ask(app, Request::get(path).header("x-user", "anna")).await
}

pub(crate) async fn ask(app: &Router, request: http::request::Builder) -> Answer {
    let request = request.body(Body::empty()).expect("a request");
    read(app.clone().oneshot(request).await.expect("an answer")).await
}

pub(crate) async fn read(answer: axum::response::Response) -> Answer {
    let (parts, body) = answer.into_parts();
    let bytes = axum::body::to_bytes(body, 10_000_000)
        .await
        .expect("a body");
    Answer {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(bytes.into()).expect("text"),
    }
}

pub(crate) async fn charged(idem: &Idempotency, key: &str) -> RecordId {
    let call = idem.call("payments.charge").key(key);
    let body = async |_| {
        step("gateway", async |_| Ok::<_, Error>("receipt-99".to_owned()))
            .run()
            .await?;
        Ok::<_, Error>("very secret outcome".to_owned())
    };
    call.run(body).await.expect("it is charged");
    id(idem, "payments.charge", key).await
}

pub(crate) async fn uncertain(idem: &Idempotency, operation: &str, key: &str) -> RecordId {
    let call = idem.call(operation).key(key).uncertain_errors();
    let silent = call.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer")));
    silent.await.expect_err("the gateway is silent");
    id(idem, operation, key).await
}

async fn id(idem: &Idempotency, operation: &str, key: &str) -> RecordId {
    let records = idem.records().operation(operation).key(key);
    records.page(1).await.expect("a page").rows[0].id
}

/// A shop in a file, whose records are audited.
pub(crate) struct Audited {
    pub(crate) store: SqliteStore,
    pub(crate) idem: Idempotency,
    pub(crate) audit: Audit,
    pub(crate) pool: SqlitePool,
    _folder: TempDir,
}

pub(crate) async fn audited() -> Audited {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await.expect("a file");
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await;
    let pool = pool.expect("a file");
    let audit = || Audit::sqlite(pool.clone());
    audit().migrate().await.expect("a trail");
    Audited {
        idem: Idempotency::new(store.clone()),
        store,
        audit: audit().connect().await.expect("it stands"),
        pool,
        _folder: folder,
    }
}
