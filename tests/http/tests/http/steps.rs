//! Handlers whose bodies have steps.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::StatusCode;
use idempotent_runtime::{BoxError, Error, http::Rules, step};

use crate::harness::{Shop, charge, respond};

/// The gateway, with what it did.
#[derive(Clone, Default)]
struct Gateway {
    booked: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
    /// How many cancellations it refuses first.
    refuses: usize,
}

impl Gateway {
    /// One step, with its undo.
    async fn book(&self) -> Result<String, Error> {
        let (booked, cancelled) = (Arc::clone(&self.booked), Arc::clone(&self.cancelled));
        let body = async |_| {
            booked.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Error>("12A".to_owned())
        };
        let refuses = self.refuses;
        let flight = step("flight", body).undo(move |_| {
            let is_refused = cancelled.fetch_add(1, Ordering::SeqCst) < refuses;
            async move {
                match is_refused {
                    true => Err::<(), BoxError>("the gateway is busy".into()),
                    false => Ok(()),
                }
            }
        });
        flight.run().await
    }

    fn did(&self) -> (usize, usize) {
        let count = |it: &AtomicUsize| it.load(Ordering::SeqCst);
        (count(&self.booked), count(&self.cancelled))
    }
}

/// A handler that answers its n-th run with the n-th of these.
fn shop(gateway: &Gateway, statuses: [StatusCode; 2]) -> Shop {
    let gateway = gateway.clone();
    Shop::with(Rules::ietf(), move |run, _| {
        let gateway = gateway.clone();
        async move {
            match gateway.book().await {
                Ok(seat) => respond(statuses[run - 1], seat),
                Err(error) => respond(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            }
        }
    })
}

#[tokio::test]
async fn j01_a_handler_goes_on_with_its_steps_after_an_answer_that_is_not_kept() {
    let gateway = Gateway::default();
    let shop = shop(
        &gateway,
        [StatusCode::SERVICE_UNAVAILABLE, StatusCode::CREATED],
    );
    assert_eq!(shop.send(charge()).await.status, 503);
    let first = shop.send(charge()).await;
    assert_eq!((first.status.as_u16(), &first.body[..]), (201, &b"12A"[..]));
    assert!(shop.send(charge()).await.is_replay());
    assert_eq!((shop.runs(), gateway.did()), (2, (1, 0)));
}

#[tokio::test]
async fn j18_a_handler_whose_failure_is_kept_undoes_its_steps() {
    let gateway = Gateway::default();
    let shop = shop(&gateway, [StatusCode::CONFLICT; 2]);
    let first = shop.send(charge()).await;
    assert_eq!(first.status, 409);
    assert_eq!(
        gateway.did(),
        (1, 1),
        "they are undone before it is answered"
    );
    shop.send(charge()).await.replays(&first);
    assert_eq!((shop.runs(), gateway.did()), (1, (1, 1)));
}

#[tokio::test]
async fn j23_what_a_handler_could_not_undo_is_resumed_and_answers_retries() {
    let gateway = Gateway {
        refuses: 3,
        ..Gateway::default()
    };
    let shop = shop(&gateway, [StatusCode::CONFLICT; 2]);
    for _ in 0..2 {
        let parked = shop.send(charge()).await;
        parked.is_problem(409, "outcome_unknown");
    }
    let settle = shop.layer.settle(Some("A"), "k").expect("these are keys");
    settle.resume().await.expect("it is parked");
    let undone = shop.send(charge()).await;
    assert_eq!(
        (undone.status.as_u16(), &undone.body[..]),
        (409, &b"12A"[..])
    );
    assert!(shop.send(charge()).await.is_replay());
    assert_eq!(gateway.did(), (1, 4));
}
