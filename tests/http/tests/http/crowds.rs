//! Many clients of many tenants at once, which repeat themselves, mistake a key and hang up.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use idempotent_runtime::http::{IdempotencyKey, Rules};

use crate::harness::{Answer, Ask, CALLER, Shop, post, respond};

const CLIENTS: u64 = 64;
const TENANTS: u64 = 8;
const REQUESTS: u32 = 1_000;

/// Which keys handlers ran for, and how often.
type Runs = Arc<Mutex<BTreeMap<String, u32>>>;

/// A shop whose receipts tell whose they are, for which key and by which run of it.
fn shop(runs: &Runs) -> Shop {
    let runs = Arc::clone(runs);
    Shop::with(Rules::ietf(), move |_, request: Request<Body>| {
        let runs = Arc::clone(&runs);
        async move {
            let key = request.extensions().get::<IdempotencyKey>();
            let key = key.expect("the layer gives it").as_str().to_owned();
            let tenant = request.headers()[CALLER]
                .to_str()
                .expect("ASCII")
                .to_owned();
            let body = request.into_body().collect().await.expect("it is whole");
            tokio::task::yield_now().await;
            let receipt = receipt(&tenant, &key);
            let run = {
                let mut runs = runs.lock().expect("nobody panics");
                let run = runs.entry(receipt.clone()).or_default();
                *run += 1;
                *run
            };
            assert_eq!(body.to_bytes(), amount(&key), "it is the first request");
            respond(StatusCode::CREATED, format!("{receipt}, run {run}"))
        }
    })
}

fn receipt(tenant: &str, key: &str) -> String {
    format!("{key} of {tenant}")
}

/// The amount to be paid under a key.
fn amount(key: &str) -> Bytes {
    format!("amount for {key}").into()
}

/// Numbers that look random, the same in each run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % end
    }
}

struct Client {
    shop: Shop,
    tenant: String,
    /// How many keys each client of its tenant has used.
    used: Arc<Vec<AtomicU32>>,
    place: usize,
    dice: Dice,
}

impl Client {
    async fn run(mut self) {
        for _ in 0..REQUESTS {
            let used = self.used[self.place].load(Ordering::Relaxed);
            match self.dice.below(10) {
                0 if used > 0 => self.mistake_a_key(used).await,
                1..=3 => self.repeat_somebody().await,
                _ => {
                    self.pay(&format!("{}-{used}", self.place)).await;
                    self.used[self.place].store(used + 1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Repeats a request of this client or of another one of the tenant's, or comes before it.
    async fn repeat_somebody(&mut self) {
        let place = self.dice.below(self.used.len() as u32) as usize;
        let used = self.used[place].load(Ordering::Relaxed);
        let number = self.dice.below(used + 1);
        self.pay(&format!("{place}-{number}")).await;
    }

    async fn mistake_a_key(&mut self, used: u32) {
        let number = self.dice.below(used);
        let key = format!("{}-{number}", self.place);
        let other = post("/charges").key(&key).caller(&self.tenant);
        let refused = self.answered(&other.body("another amount")).await;
        refused.is_problem(422, "key_reused");
    }

    async fn pay(&mut self, key: &str) {
        let request = post("/charges").key(key).caller(&self.tenant);
        let request = request.body(amount(key));
        let mut answer = self.answered(&request).await;
        while answer.status == StatusCode::CONFLICT {
            answer.is_problem(409, "request_in_progress");
            tokio::task::yield_now().await;
            answer = self.answered(&request).await;
        }
        assert_eq!(answer.status, StatusCode::CREATED);
        let receipt = receipt(&self.tenant, key);
        assert_eq!(answer.body, format!("{receipt}, run 1"));
    }

    /// Sends a request until it is answered, and hangs up at times.
    async fn answered(&mut self, request: &Ask) -> Answer {
        loop {
            let polls = match self.dice.below(10) {
                0 => self.dice.below(4),
                _ => u32::MAX,
            };
            let mut left = polls;
            let mut answer = pin!(self.shop.send(request.clone()));
            let answer = poll_fn(|context| {
                if left == 0 {
                    return Poll::Ready(None);
                }
                left -= 1;
                answer.as_mut().poll(context).map(Some)
            });
            if let Some(answer) = answer.await {
                return answer;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_clients_of_a_thousand_requests_run_each_key_once() {
    let runs = Runs::default();
    let shop = shop(&runs);
    let places = (CLIENTS / TENANTS) as usize;
    let mut clients = Vec::new();
    for tenant in 0..TENANTS {
        let used: Arc<Vec<_>> = Arc::new((0..places).map(|_| AtomicU32::new(0)).collect());
        for place in 0..places {
            let client = Client {
                shop: shop.clone(),
                // All have keys of the same names.
                tenant: format!("tenant {tenant}"),
                used: Arc::clone(&used),
                place,
                dice: Dice(1 + tenant * CLIENTS + place as u64),
            };
            clients.push(tokio::spawn(client.run()));
        }
    }

    for client in clients {
        client.await.expect("each answer is its own");
    }

    let runs = runs.lock().expect("nobody panics");
    let again: Vec<_> = runs.iter().filter(|(_, runs)| **runs != 1).collect();
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(shop.runs(), runs.len());
}
