//! A shop with a unary and a streaming method, behind the layer on a real socket, and a client of
//! it.

use std::{
    convert::Infallible,
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::{Buf, BufMut};
use http::{HeaderValue, uri::PathAndQuery};
use idempotent_runtime::{
    BoxError, Error, Idempotency, MemoryStore,
    http::{IdempotencyKey, IdempotencyLayer, Presence, ReplayHint, Rules},
    step,
    testing::{FaultyStore, Gate},
};
use tokio_stream::Stream;
use tonic::{
    Request, Response, Status,
    body::Body,
    client,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::{self, NamedService, ServerStreamingService, UnaryService},
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};
use tower::Service;

pub(crate) const PLACE: &str = "/shop.v1.Orders/Place";
pub(crate) const WATCH: &str = "/shop.v1.Orders/Watch";

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The shop. The order itself says what becomes of it.
#[derive(Clone)]
pub(crate) struct Orders {
    runs: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
    pub(crate) gate: Gate,
}

impl Orders {
    pub(crate) fn new() -> Self {
        Self {
            runs: Arc::default(),
            cancelled: Arc::default(),
            gate: Gate::new(),
        }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// How many parcels were cancelled.
    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }

    async fn place(self, request: Request<String>) -> Result<Response<String>, Status> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let key = request.extensions().get::<IdempotencyKey>();
        let key = key.map_or("none", IdempotencyKey::as_str).to_owned();
        match request.get_ref().as_str() {
            "unknown article" => Err(Status::not_found(format!("100 % unknown in run {run}"))),
            "sold out today" => Err(Status::unavailable(format!("sold out in run {run}"))),
            "broken shelf" => Err(Status::internal(format!("broken in run {run}"))),
            "in a parcel" => {
                send_parcel(&self.cancelled).await?;
                Ok(Response::new(format!("receipt {run}")))
            }
            "too heavy a parcel" => {
                send_parcel(&self.cancelled).await?;
                Err(Status::failed_precondition("it is too heavy"))
            }
            "wooden nickel" => panic!("the handler of a test"),
            "second hand" => {
                let mut response = Response::new("perhaps".to_owned());
                response.extensions_mut().insert(ReplayHint::Uncertain);
                Ok(response)
            }
            "slow" => {
                self.gate.pass().await;
                Ok(Response::new(format!("receipt {run}")))
            }
            article => {
                let mut response = Response::new(format!("receipt {run} for {article}"));
                let key = key.parse().expect("a key is a value");
                response.metadata_mut().insert("seen-key", key);
                Ok(response)
            }
        }
    }
}

/// A step, whose undo counts.
pub(crate) async fn send_parcel(cancelled: &Arc<AtomicUsize>) -> Result<(), Status> {
    let cancelled = Arc::clone(cancelled);
    let parcel = step("parcel", async |_| Ok::<_, Error>(()));
    let parcel = parcel.undo(move |_| {
        cancelled.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok::<_, BoxError>(()))
    });
    let sent = parcel.await;
    sent.map_err(|error| Status::internal(error.to_string()))
}

impl NamedService for Orders {
    const NAME: &'static str = "shop.v1.Orders";
}

impl Service<http::Request<Body>> for Orders {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Boxed<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let orders = self.clone();
        Box::pin(async move {
            let mut grpc = server::Grpc::new(Text);
            Ok(match request.uri().path() {
                PLACE => grpc.unary(Place(orders), request).await,
                WATCH => grpc.server_streaming(Watch(orders), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

struct Place(Orders);

impl UnaryService<String> for Place {
    type Response = String;
    type Future = Boxed<Result<Response<String>, Status>>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        Box::pin(self.0.clone().place(request))
    }
}

struct Watch(Orders);

impl ServerStreamingService<String> for Watch {
    type Response = String;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<String, Status>> + Send>>;
    type Future = Boxed<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _: Request<String>) -> Self::Future {
        self.0.runs.fetch_add(1, Ordering::SeqCst);
        // It never ends: a layer that reads it to its end before giving anything on gives nothing
        // on.
        let live = tokio_stream::StreamExt::chain(
            tokio_stream::once(Ok("event".to_owned())),
            tokio_stream::pending(),
        );
        Box::pin(async move { Ok(Response::new(Box::pin(live) as Self::ResponseStream)) })
    }
}

/// A server, and what is behind it.
pub(crate) struct Shop {
    pub(crate) orders: Orders,
    pub(crate) store: FaultyStore,
    address: SocketAddr,
}

/// A server whose unary method is guarded by these rules, and nothing else.
pub(crate) fn open(rules: Rules) -> Shop {
    let store = FaultyStore::new(MemoryStore::new());
    let layer = IdempotencyLayer::builder(Idempotency::new(store.clone()))
        .scope("caller", |request| match request.headers.get("caller") {
            Some(caller) => caller
                .to_str()
                .ok()
                .filter(|caller| *caller != "nobody")
                .map(str::to_owned),
            None => Some("A".to_owned()),
        })
        .rules(Rules::ietf().key(Presence::Ignored))
        .route(PLACE, |_| rules)
        .build()
        .expect("the settings are sound");
    let orders = Orders::new();
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("there is a port");
    let shop = Shop::at(&incoming, orders.clone(), store);
    let server = Server::builder().layer(layer).add_service(orders);
    tokio::spawn(server.serve_with_incoming(incoming));
    shop
}

impl Shop {
    /// A shop that is to be served there.
    pub(crate) fn at(incoming: &TcpIncoming, orders: Orders, store: FaultyStore) -> Self {
        let address = incoming.local_addr().expect("it has an address");
        Self {
            orders,
            store,
            address,
        }
    }

    /// A client on a connection of its own.
    pub(crate) async fn client(&self) -> client::Grpc<Channel> {
        let endpoint = Endpoint::try_from(format!("http://{}", self.address));
        let channel = endpoint.expect("it is an address").connect().await;
        let mut client = client::Grpc::new(channel.expect("it listens"));
        client.ready().await.expect("it is connected");
        client
    }

    /// The answer to an order that is carried out.
    pub(crate) async fn placed(&self, request: Request<String>) -> Response<String> {
        self.place(request).await.expect("it is placed")
    }

    /// The answer to an order that fails, or is refused.
    pub(crate) async fn fails(&self, request: Request<String>) -> Status {
        self.place(request).await.expect_err("it fails")
    }

    pub(crate) async fn place(&self, request: Request<String>) -> Result<Response<String>, Status> {
        let path = PathAndQuery::from_static(PLACE);
        self.client().await.unary(request, path, Text).await
    }
}

/// An order with the key `"k"`, as a client would repeat it.
pub(crate) fn order(article: &str) -> Request<String> {
    with("idempotency-key", "\"k\"", Request::new(article.to_owned()))
}

pub(crate) fn with(
    name: &'static str,
    value: &'static str,
    mut request: Request<String>,
) -> Request<String> {
    let value = HeaderValue::from_static(value);
    let value = value.to_str().expect("it is text").parse();
    request
        .metadata_mut()
        .append(name, value.expect("a value of metadata"));
    request
}

/// Messages that are text, so that no schema stands between the test and the wire.
#[derive(Clone, Copy)]
pub(crate) struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Text;
    type Decoder = Text;

    fn encoder(&mut self) -> Text {
        Text
    }

    fn decoder(&mut self) -> Text {
        Text
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(text.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        let text = String::from_utf8(bytes.to_vec());
        text.map(Some).map_err(|_| Status::internal("no text"))
    }
}
