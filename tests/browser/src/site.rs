//! The page, served on a free port.

use std::net::SocketAddr;

use axum::Router;
use http::request::Parts;
use idempotent_admin::{Act, Page, Person};
use idempotent_runtime::Idempotency;
use tokio::{net::TcpListener, task::JoinHandle};

/// A router that is served until this is dropped.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Site {
    /// Serves this router.
    pub async fn serve(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = async move { axum::serve(listener, router).await.expect("it serves") };
        Self {
            address,
            serving: tokio::spawn(serving),
        }
    }

    /// Serves these pages, each below its own prefix.
    pub async fn pages(pages: impl IntoIterator<Item = (&'static str, Page)>) -> Self {
        let nested = pages.into_iter().fold(Router::new(), |router, (at, page)| {
            router.nest(at, page.router())
        });
        Self::serve(nested).await
    }

    /// The address of a path.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The same under another name of this machine, which is another site for a browser.
    #[must_use]
    pub fn at_localhost(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.address.port())
    }
}

/// The access of one person, who may do everything.
pub fn everything(name: &'static str) -> impl Fn(&Parts) -> Option<Person> + Send + Sync {
    move |_| Some(Person::reader(name).with(Act::ALL))
}

/// The access of a person whom nobody knows.
#[must_use]
pub fn nobody(_: &Parts) -> Option<Person> {
    None
}

/// The page of this person. All pages have the same secret, as those of one service have.
pub fn page_of(name: &'static str, idem: &Idempotency) -> Page {
    Page::new(idem.clone(), everything(name)).secret(&[7; 32])
}
