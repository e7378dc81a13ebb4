//! A problem in a handler's own response, told anew by the settings of the layer around it.

use bytes::Bytes;
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, LINK},
    response::Parts,
};
use http_body::Body as HttpBody;

use super::{Kind, Problem, Problems, Rendered};

/// Stands among the extensions of a response that is this problem, told as where there is no layer.
#[derive(Clone, Debug)]
pub(crate) struct Told(pub(crate) Problem);

/// Whether the handler has answered with the problem of a call that another one holds, or has done
/// already. Its key is released so that a retry reaches the handler, and not because nothing
/// happened.
pub(crate) fn is_about_another_call(head: &Parts) -> bool {
    let problem = head.extensions.get::<Told>();
    problem.is_some_and(|Told(problem)| {
        matches!(
            problem.kind(),
            Kind::RequestInProgress | Kind::ResultOutOfReach
        )
    })
}

impl Problems {
    /// Tells the problem that this response is as the layer tells its own, and gives the body: status and header fields that the
    /// handler set beside it stay. Gives nothing where the response is no problem of ours, or none any more, because it was changed
    /// on its way.
    pub(crate) fn retell(
        &self,
        head: &mut Parts,
        body: &impl HttpBody,
        request: &HeaderMap,
    ) -> Option<Bytes> {
        let Told(problem) = head.extensions.remove::<Told>()?;
        let before = Problems::new().render(&problem, &HeaderMap::new());
        if !is_unchanged(&before, head, body) {
            return None;
        }
        let problem = problem.with_status(head.status);
        let Rendered {
            content_type,
            content_language,
            body,
        } = self.render(&problem, request);
        let headers = &mut head.headers;
        headers.insert(CONTENT_TYPE, content_type);
        // A language that is not ours was set by the handler.
        if headers.get(CONTENT_LANGUAGE) == before.content_language.as_ref() {
            headers.remove(CONTENT_LANGUAGE);
            headers.extend(content_language.map(|language| (CONTENT_LANGUAGE, language)));
        }
        if let Some(link) = self.link(problem.kind()) {
            headers.append(LINK, link.clone());
        }
        // Whoever sends it counts the bytes anew, and leaves them out where the request was a `HEAD`.
        headers.remove(CONTENT_LENGTH);
        Some(body)
    }
}

/// Tells whether a response is still what it was made as. Its body cannot be looked into before it is read, but whatever is made
/// of a document has another length, another type or a coding.
fn is_unchanged(before: &Rendered, head: &Parts, body: &impl HttpBody) -> bool {
    let length = u64::try_from(before.body.len()).ok();
    head.headers.get(CONTENT_TYPE) == Some(&before.content_type)
        && !head.headers.contains_key(CONTENT_ENCODING)
        && body.size_hint().exact() == length
}
