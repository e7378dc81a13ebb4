//! Servers that fall silent at any message of a transaction that the library owns.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency, InFlight,
    outbox::OutboxDatabase,
    step::in_transaction,
    testing::{Disconnect, Proxy},
    transaction::{SqlDatabase, Transact, transaction},
};
use tokio::{task::JoinSet, time::timeout};

use super::{Connection, Placed};
use crate::transactions::shop::{MariaDbShop, PostgresShop, Remote, Shop};

/// No call takes so long, unless it hangs: the pool alone waits 30 seconds for a connection.
const HANGS: Duration = Duration::from_secs(55);

/// No form sends more messages, with the one by which the pool asks a connection whether it lives.
const MESSAGES: u64 = 11;

#[derive(Clone, Copy, Debug)]
enum Form {
    Own,
    Around,
    Step,
}

/// Has a transaction in which only the library sends statements.
async fn place<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    idem: &Idempotency,
    form: Form,
    key: &str,
) -> Placed {
    let how = Transact::new(shop.pool()).retry_for(Duration::ZERO);
    let call = idem.call("orders.place").key(key).release_errors();
    match form {
        Form::Own => {
            let call = call.in_flight(InFlight::Wait(Duration::ZERO));
            call.transact(how, async |_| Ok(7)).await
        }
        Form::Around => transaction(how, async |_: &mut Connection<S>| Ok(7)).await,
        Form::Step => {
            let step = in_transaction("ledger", shop.pool()).retry_for(Duration::ZERO);
            call.run(async |_| step.run(async |_, _| Ok(7)).await).await
        }
    }
}

/// Silences one message; the call ends, and the next one is answered.
async fn ends<S: Remote + Shop<Database: SqlDatabase>>(form: Form, message: u64) {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = S::through_uncached(proxy.address()).await;
    let idem = Idempotency::new(shop.store());
    let first = place(&shop, &idem, form, "first").await;
    assert_eq!(first.ok(), Some(7), "{form:?}");
    while shop.pool().num_idle() < shop.pool().size() as usize {
        tokio::task::yield_now().await;
    }

    proxy.cut_after(message, Disconnect::Silence);
    let ended = timeout(HANGS, place(&shop, &idem, form, "k")).await;

    assert!(ended.is_ok(), "{form:?} hangs at message {message}");
    proxy.cancel_cut();
    let again = place(&shop, &idem, form, "k").await;
    assert_eq!(again.ok(), Some(7), "{form:?}, {message}");
}

#[derive(Clone, Copy, Debug)]
enum Look {
    Check,
    Parked,
    Resume,
    Discard,
}

/// Silences the first statement of an operator, behind the question whether the connection lives.
async fn look_ends<S: Remote + Shop<Database: OutboxDatabase>>(look: Look) {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = S::through_uncached(proxy.address()).await;
    let outbox = crate::outbox::outbox(&shop).await;
    while shop.pool().num_idle() < shop.pool().size() as usize {
        tokio::task::yield_now().await;
    }

    proxy.cut_after(1, Disconnect::Silence);
    let looking = async {
        match look {
            Look::Check => outbox.check_schema().await.map(|()| false),
            Look::Parked => outbox.parked().await.map(|parked| !parked.is_empty()),
            Look::Resume => outbox.resume("k").await,
            Look::Discard => outbox.discard("k", "id").because("it is unlucky").await,
        }
    };
    let ended = timeout(HANGS, looking).await;

    let ended = ended.unwrap_or_else(|_| panic!("{look:?} hangs"));
    assert!(matches!(ended, Err(Error::Store(_))), "{ended:?}");
    proxy.cancel_cut();
    assert_eq!(outbox.parked().await.map(|it| it.len()), Ok(0), "{look:?}");
}

async fn every_silence_ends<S: Remote + Shop<Database: OutboxDatabase>>() {
    let mut calls = JoinSet::new();
    for look in [Look::Check, Look::Parked, Look::Resume, Look::Discard] {
        calls.spawn(look_ends::<S>(look));
    }
    for form in [Form::Own, Form::Around, Form::Step] {
        for message in 0..MESSAGES {
            calls.spawn(ends::<S>(form, message));
        }
    }
    while let Some(ended) = calls.join_next().await {
        ended.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_17_a_silent_postgres_hangs_no_transaction() {
    every_silence_ends::<PostgresShop>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_17_a_silent_mariadb_hangs_no_transaction() {
    every_silence_ends::<MariaDbShop>().await;
}
