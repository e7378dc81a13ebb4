//! The check that a handler of HTTP wants.

use std::{fmt::Debug, future::poll_fn};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::{
    error::BoxError,
    http::{HeaderPolicy, IDEMPOTENCY_KEY, whole_body},
};

/// Sends the same request `times` times, one after the other, checks that it makes no difference
/// how often, and returns the first response.
///
/// `state` tells what the request is to change: the rows of a table, the calls that a fake gateway
/// saw. It must be the same after every request as after the first.
///
/// If the request has an `Idempotency-Key`, every response must be the first one again: its status,
/// its body, and the header fields that [`HeaderPolicy`] keeps by default. If it has none, as is
/// usual for PUT and DELETE, the responses may differ: the second DELETE may well find nothing (RFC
/// 9110, section 9.2.2).
///
/// # Panics
///
/// When state or responses differ, when the service or a body fails, or when `times` is less than
/// two.
///
/// # Examples
///
/// ```
/// # use std::{convert::Infallible, sync::{Arc, Mutex}};
/// use http::{Request, Response};
/// use idempotent_runtime::testing::assert_idempotent;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let shelf = Arc::new(Mutex::new(vec!["book"]));
/// let service = tower::service_fn({
///     let shelf = Arc::clone(&shelf);
///     move |_: Request<String>| {
///         shelf.lock().unwrap().clear();
///         async { Ok::<_, Infallible>(Response::new(String::new())) }
///     }
/// });
/// let request = || Request::delete("/shelf").body(String::new()).unwrap();
/// assert_idempotent(3, service, request, async || shelf.lock().unwrap().clone()).await;
/// # }
/// ```
pub async fn assert_idempotent<S, B, R, T, C>(
    times: usize,
    mut service: S,
    request: impl Fn() -> Request<B>,
    state: impl Fn() -> C,
) -> Response<Bytes>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Debug,
    R: Body<Data = Bytes>,
    R::Error: Into<BoxError>,
    C: Future<Output = T>,
    T: PartialEq + Debug,
{
    assert!(times > 1, "`assert_idempotent` needs at least two requests");
    let has_key = request().headers().contains_key(IDEMPOTENCY_KEY);
    let first = send(&mut service, request()).await;
    let changed = state().await;
    for time in 2..=times {
        let again = send(&mut service, request()).await;
        assert_eq!(
            changed,
            state().await,
            "the state after request 1 and after request {time} of {times} equal ones"
        );
        if has_key {
            assert_eq!(
                comparable(&first),
                comparable(&again),
                "response 1 and response {time} to {times} equal requests"
            );
        }
    }
    first
}

async fn send<S, B, R>(service: &mut S, request: Request<B>) -> Response<Bytes>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Debug,
    R: Body<Data = Bytes>,
    R::Error: Into<BoxError>,
{
    let failed = "the service answers every request";
    poll_fn(|cx| service.poll_ready(cx)).await.expect(failed);
    let (head, body) = service.call(request).await.expect(failed).into_parts();
    let body = whole_body(body).await;
    Response::from_parts(head, body.expect("the body is whole"))
}

/// The parts that must be equal in every response.
fn comparable(response: &Response<Bytes>) -> (u16, HeaderMap, &Bytes) {
    let headers = HeaderPolicy::new().stored(response.headers());
    (response.status().as_u16(), headers, response.body())
}
