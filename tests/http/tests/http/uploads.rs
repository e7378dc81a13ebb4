//! A8: bodies that arrive slowly.

use std::{convert::Infallible, pin::pin, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use idempotent_runtime::http::{LayerBuilder, Rules, Scope};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
};

use crate::harness::{
    Answer, Ask, Shop, by_one_clock, charge, layer_over, on_a_clock, polled, post,
};

/// A body of what is sent to it, which says when it is waited for.
fn upload(mut pieces: UnboundedReceiver<Bytes>, waits: UnboundedSender<()>) -> Body {
    polled::<Infallible>(move |cx| {
        let piece = pieces.poll_recv(cx);
        if piece.is_pending() {
            let _nobody_asks_any_more = waits.send(());
        }
        piece.map(|piece| piece.map(Ok))
    })
}

/// A request whose body is under way.
struct Slow {
    pieces: UnboundedSender<Bytes>,
    waited_for: UnboundedReceiver<()>,
    answer: JoinHandle<Answer>,
}

impl Slow {
    /// Sends it, and comes back when its body is waited for.
    async fn begin(shop: &Shop, ask: Ask) -> Self {
        let (pieces, arriving) = unbounded_channel();
        let (waits, waited_for) = unbounded_channel();
        let request = ask.streaming(upload(arriving, waits));
        let answer = tokio::spawn(shop.clone().send_owned(request));
        let mut slow = Self {
            pieces,
            waited_for,
            answer,
        };
        slow.waits().await;
        slow
    }

    async fn waits(&mut self) {
        self.waited_for.recv().await.expect("it is waited for");
        while self.waited_for.try_recv().is_ok() {}
    }

    async fn sends(&mut self, piece: &'static str) {
        self.pieces.send(piece.into()).expect("it is being read");
        self.waits().await;
    }

    async fn ends(self) -> Answer {
        drop(self.pieces);
        self.answer.await.expect("it is answered")
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn first_hour_17_s_86_a_body_that_falls_silent_is_refused_with_408_and_may_be_sent_again() {
    for (rules, seconds) in [(Rules::ietf(), 30), (Rules::ietf().body_timeout("5s"), 5)] {
        let (shop, gate, clock) = on_a_clock(rules);
        gate.open();
        let mut slow = Slow::begin(&shop, charge()).await;
        for _ in 0..3 {
            clock.advance((seconds - 1) * SECOND);
            slow.sends("amount").await;
        }
        // A frame without a byte is no sign of life.
        clock.advance((seconds - 1) * SECOND);
        slow.sends("").await;
        clock.advance(SECOND);

        let answer = slow.answer.await.expect("it is answered");

        let document = answer.is_problem(408, "body_timeout");
        assert_eq!(
            (&document["retryable"], &document["key_action"]),
            (&true.into(), &"keep".into())
        );
        assert_eq!((shop.runs(), shop.store.round_trips()), (0, 0));
        shop.send(charge()).await.is_fresh();
    }
}

#[tokio::test]
async fn first_hour_17_a_body_that_drips_has_ten_minutes_in_all() {
    for (rules, steps) in [(Rules::ietf(), 30), (Rules::ietf().body_deadline("1m"), 3)] {
        let (shop, _, clock) = on_a_clock(rules);
        let mut slow = Slow::begin(&shop, charge()).await;
        for _ in 1..steps {
            clock.advance(20 * SECOND);
            slow.sends("a").await;
        }
        clock.advance(20 * SECOND);
        let answer = slow.answer.await.expect("it is answered");
        answer.is_problem(408, "body_timeout");
    }
}

fn shop_of(set_up: impl FnOnce(LayerBuilder<Scope>) -> LayerBuilder<Scope>) -> Shop {
    let (store, idem, _) = by_one_clock(|handle| handle);
    let layer = layer_over(&idem, set_up);
    Shop::behind(layer, store, idem, |_, request: Request<Body>| async {
        http::Response::new(request.into_body())
    })
}

#[tokio::test]
async fn first_hour_17_a_body_that_arrives_takes_the_place_of_a_handler() {
    let shop = shop_of(|layer| layer.max_in_flight(1));
    let slow = Slow::begin(&shop, charge()).await;

    let (_held, arriving) = unbounded_channel();
    let (waits, _) = unbounded_channel();
    let another = upload(arriving, waits);
    let another = post("/charges").key("another").streaming(another);
    shop.send_as_is(another).await.is_problem(503, "overloaded");
    let whole = || post("/charges").key("whole").body("all of it");
    shop.send(whole()).await.is_problem(503, "overloaded");

    slow.ends().await.is_fresh();
    let first = shop.send(whole()).await;
    first.is_fresh();

    // A known request is answered without a place if its body has come.
    let _slow = Slow::begin(&shop, post("/charges").key("slow")).await;
    shop.send(whole()).await.replays(&first);
}

#[tokio::test]
async fn first_hour_17_a_body_that_arrives_counts_for_its_caller() {
    let shop = shop_of(|layer| layer.max_in_flight_per_caller(1));
    let slow = Slow::begin(&shop, charge().caller("A")).await;

    let whole = || post("/charges").key("whole").body("all of it");
    shop.refuses(whole().caller("A"), 429, "too_many_keys")
        .await;
    shop.send(whole().caller("B")).await.is_fresh();
    slow.ends().await.is_fresh();
    shop.send(whole().caller("A")).await.is_fresh();
}

#[tokio::test]
async fn first_hour_17_a_body_that_arrives_does_not_hold_up_the_end_of_the_service() {
    let shop = shop_of(|layer| layer);
    let slow = Slow::begin(&shop, charge()).await;

    let layer = shop.layer.clone();
    let ended = pin!(layer.shutdown(60 * SECOND));
    assert!(ended.await);

    slow.ends().await.is_problem(503, "overloaded");
    assert_eq!(shop.runs(), 0);
}
