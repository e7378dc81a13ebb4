//! From a problem to a response.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Response,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, LINK, RETRY_AFTER},
};

use super::{Document, Kind, Problem, ProblemJson, Rendered, Renderer};

/// Names what no page of the service describes.
const NAMES: &str = "urn:idempotent-runtime:problem:";

/// How a service answers with problems: where their types are described, and in which
/// representation they are sent.
///
/// # Examples
///
/// ```
/// use http::{HeaderMap, Method};
/// use idempotent_runtime::http::problem::{Kind, Problem, Problems};
///
/// let problems = Problems::new()
///     .base("https://api.example.com/problems/")?
///     .documentation("https://api.example.com/docs/idempotency")?;
/// let response = problems.respond(&Problem::new(Kind::KeyReused), &Method::POST, &HeaderMap::new());
/// assert_eq!(response.status(), 422);
/// assert_eq!(response.headers()["content-type"], "application/problem+json");
/// # Ok::<(), idempotent_runtime::http::problem::InvalidUri>(())
/// ```
#[derive(Clone, Debug)]
pub struct Problems {
    base: Arc<str>,
    documentation: Option<HeaderValue>,
    /// One of the service's own; [`ProblemJson`] where it has none.
    renderer: Option<Arc<dyn Renderer>>,
}

impl Problems {
    /// Answers in JSON, with types that are names: `urn:idempotent-runtime:problem:` and the slug.
    #[must_use]
    pub fn new() -> Self {
        Self {
            base: Arc::from(NAMES),
            documentation: None,
            renderer: None,
        }
    }

    /// Sets what stands before the slug in a problem's type: an absolute URI of the service's own
    /// that ends in `/`, `#` or the like. Clients know a problem by what stands behind that.
    ///
    /// # Errors
    ///
    /// When it is not an absolute URI, or runs on into the slug, as
    /// `https://api.example.com/problems` would.
    pub fn base(mut self, uri: &str) -> Result<Self, InvalidUri> {
        let runs_on = |last: char| last.is_ascii_alphanumeric() || "-._~%".contains(last);
        if uri.ends_with(runs_on) {
            return Err(InvalidUri);
        }
        self.base = Arc::from(absolute(uri)?);
        Ok(self)
    }

    /// Sets the page to which answers link that ask the client to change its request: `Link: <…>;
    /// rel="describedby"` (draft-07, section 2.7).
    ///
    /// # Errors
    ///
    /// When it is not an absolute URI.
    pub fn documentation(mut self, uri: &str) -> Result<Self, InvalidUri> {
        let link = format!(
            "<{}>; rel=\"describedby\"; type=\"text/html\"",
            absolute(uri)?
        );
        self.documentation = Some(HeaderValue::try_from(link).map_err(|_| InvalidUri)?);
        Ok(self)
    }

    /// Sets the representation.
    #[must_use]
    pub fn renderer(mut self, renderer: impl Renderer + 'static) -> Self {
        self.renderer = Some(Arc::new(renderer));
        self
    }

    /// The type URI of a kind.
    #[must_use]
    pub fn type_uri(&self, kind: Kind) -> String {
        format!("{}{}", self.base, kind.slug())
    }

    /// Makes the response to a request of that method and those header fields.
    ///
    /// It is never to be stored, by caches or as an outcome, and one to `HEAD` has no body.
    #[must_use]
    pub fn respond(
        &self,
        problem: &Problem,
        method: &Method,
        request: &HeaderMap,
    ) -> Response<Bytes> {
        let rendered = self.render(problem, request);
        let body = if *method == Method::HEAD {
            Bytes::new()
        } else {
            rendered.body
        };
        let mut response = Response::new(body);
        *response.status_mut() = problem.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, rendered.content_type);
        if let Some(language) = rendered.content_language {
            headers.insert(CONTENT_LANGUAGE, language);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = problem.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(link) = self.link(problem.kind()) {
            headers.insert(LINK, link.clone());
        }
        response
    }

    pub(super) fn render(&self, problem: &Problem, request: &HeaderMap) -> Rendered {
        let type_uri = self.type_uri(problem.kind());
        let document = Document {
            type_uri: &type_uri,
            problem,
        };
        match &self.renderer {
            None => ProblemJson.render(&document, request),
            Some(renderer) => renderer.render(&document, request),
        }
    }

    pub(super) fn link(&self, kind: Kind) -> Option<&HeaderValue> {
        let link = self.documentation.as_ref();
        link.filter(|_| kind.is_described())
    }

    /// Tells whether what a problem is told as may depend on the request.
    pub(crate) fn ask_the_request(&self) -> bool {
        self.renderer.is_some()
    }
}

impl Default for Problems {
    fn default() -> Self {
        Self::new()
    }
}

/// A text is not an absolute URI, or one to which nothing can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the URI must be absolute, and end in `/`, `#` or the like where a problem's name is added to it, such as `https://api.example.com/problems/`"
)]
#[non_exhaustive]
pub struct InvalidUri;

/// Checks that a text begins with a scheme and holds only what a URI may hold (RFC 3986, section
/// 2): then it can stand in a `Link`.
fn absolute(uri: &str) -> Result<&str, InvalidUri> {
    let (scheme, rest) = uri.split_once(':').ok_or(InvalidUri)?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let may_stand =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    let sound = is_scheme && !rest.is_empty() && rest.bytes().all(may_stand);
    sound.then_some(uri).ok_or(InvalidUri)
}
