//! A9: interceptors outside of the layer, and inside.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use idempotent_runtime::{
    Idempotency, MemoryStore,
    http::{IdempotencyLayer, LayerBuilder, MissingScope, Presence, Rules, Scope},
    testing::FaultyStore,
};
use tonic::{
    Code, Request, Status,
    service::{InterceptorLayer, interceptor::InterceptedService},
    transport::{Server, server::TcpIncoming},
};

use crate::harness::{Orders, PLACE, Shop, order, with};

#[derive(Clone)]
struct User(String);

/// Lets in who names itself, while access is granted, and leaves the name among the extensions of
/// the request.
fn authenticate(
    granted: Arc<AtomicBool>,
) -> impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone {
    move |mut request| {
        let caller = request.metadata().get("caller").cloned();
        let name = caller.and_then(|caller| Some(caller.to_str().ok()?.to_owned()));
        match name {
            Some(name) if granted.load(Ordering::SeqCst) => {
                request.extensions_mut().insert(User(name));
                Ok(request)
            }
            _ => Err(Status::unauthenticated("who are you?")),
        }
    }
}

fn builder(store: &FaultyStore) -> LayerBuilder<MissingScope> {
    IdempotencyLayer::builder(Idempotency::new(store.clone()))
}

fn layer(builder: LayerBuilder<Scope>) -> IdempotencyLayer {
    let layer = builder
        .rules(Rules::ietf().key(Presence::Ignored))
        .route(PLACE, |_| Rules::grpc_unary());
    layer.build().expect("the settings are sound")
}

/// A shop, where it is to be served, and whether who asks has access.
fn unserved() -> (Shop, TcpIncoming, Arc<AtomicBool>) {
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("there is a port");
    let store = FaultyStore::new(MemoryStore::new());
    let shop = Shop::at(&incoming, Orders::new(), store);
    (shop, incoming, Arc::new(AtomicBool::new(true)))
}

#[tokio::test]
async fn s_54_s_116_an_interceptor_outside_says_who_calls_and_who_gets_a_replay() {
    let (shop, incoming, granted) = unserved();
    let server = Server::builder()
        .layer(InterceptorLayer::new(authenticate(Arc::clone(&granted))))
        .layer(layer(builder(&shop.store).scope("user", |request| {
            Some(request.extensions.get::<User>()?.0.clone())
        })))
        .add_service(shop.orders.clone());
    tokio::spawn(server.serve_with_incoming(incoming));
    let of = |caller| shop.place(with("caller", caller, order("book")));

    let first = of("A").await.expect("it is placed");
    let again = of("A").await.expect("it is placed");
    let others = of("B").await.expect("it is placed");
    granted.store(false, Ordering::SeqCst);
    let revoked = of("A").await.expect_err("it has no access any more");

    assert_eq!(first.get_ref(), "receipt 1 for book");
    assert_eq!(again.get_ref(), first.get_ref());
    assert_eq!(others.get_ref(), "receipt 2 for book");
    assert_eq!(revoked.code(), Code::Unauthenticated);
    assert_eq!(shop.orders.runs(), 2);
}

/// That is where `with_interceptor` puts one: it stands before the handler, and a replay comes from
/// before that.
#[tokio::test]
async fn s_54_s_116_an_interceptor_of_the_service_is_asked_for_the_first_call_alone() {
    let (shop, incoming, granted) = unserved();
    let intercepted =
        InterceptedService::new(shop.orders.clone(), authenticate(Arc::clone(&granted)));
    let server = Server::builder()
        .layer(layer(builder(&shop.store).shared_by_all_callers()))
        .add_service(intercepted);
    tokio::spawn(server.serve_with_incoming(incoming));
    let of = |caller| shop.place(with("caller", caller, order("book")));

    granted.store(false, Ordering::SeqCst);
    let refused = of("A").await.expect_err("it has no access");
    granted.store(true, Ordering::SeqCst);
    let first = of("A").await.expect("its key is free");
    granted.store(false, Ordering::SeqCst);
    let again = of("A").await.expect("nobody asks");

    assert_eq!(refused.code(), Code::Unauthenticated);
    assert_eq!(again.get_ref(), first.get_ref());
    assert_eq!(shop.orders.runs(), 1);
}
