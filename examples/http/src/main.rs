//! One POST, sent ten times with one key over a network that loses requests, loses answers, cuts
//! both in the middle and falls silent: one charge, ten equal answers.
//!
//! ```sh
//! cargo run --example http_payments            # the ten calls, and a table of them
//! cargo run --example http_payments -- stay    # the same, and the service goes on for you and curl
//! ```

mod network;
mod service;
mod table;

use std::{env, error::Error, net::SocketAddr, time::Duration};

use idempotent_client::{ClientCall, ClientKey, ClientOutcome, IdempotencyKeys, Limits, Profile};
use idempotent_runtime::{Idempotency, store::PostgresStore};
use reqwest_middleware::ClientWithMiddleware;

use crate::{
    network::{Network, Trouble},
    service::{Charge, Journal},
    table::{Row, Table},
};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => pay(Then::End).await,
        ["stay"] => pay(Then::Stay).await,
        ["serve", database, journal] => serve(database, journal).await,
        _ => Err("say nothing, `stay`, or `serve <postgres URL> <file of charges>`".into()),
    }
}

enum Then {
    End,
    Stay,
}

/// Starts the service, calls it ten times over the bad network, and shows what came of it.
async fn pay(then: Then) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let journal = Journal::at(folder.path().join("charges.log"));
    let idem = Idempotency::sqlite(folder.path().join("idempotency.db")).await?;
    let service = service::start(idem, journal.clone(), 0).await?;
    let network = Network::to(service).await?;

    let key = ClientKey::new("order-42-charge-1")?;
    let mut table = Table::begin();
    for (number, trouble) in TROUBLES.into_iter().enumerate() {
        network.next(trouble);
        let came = call(network.address(), &key).await;
        table.row(number + 1, trouble, &came);
    }
    table.end(&journal.charges()?);

    let url = format!("http://{service}/charges");
    println!("\nBy hand:\n");
    println!(
        "curl -i {url} -H 'Idempotency-Key: \"mine-1\"' -H 'Authorization: Bearer alice-laptop' --json '{{\"order\":\"42\",\"cents\":1250}}'"
    );
    println!(
        "curl -i {url} -H 'Idempotency-Key: \"mine-1\"' -H 'Authorization: Bearer alice-laptop' --json '{{\"order\":\"42\",\"cents\":1250}}'   # replayed"
    );
    println!(
        "curl -i {url} -H 'Idempotency-Key: \"mine-1\"' -H 'Authorization: Bearer alice-laptop' --json '{{\"order\":\"42\",\"cents\":9999}}'   # refused: 422"
    );
    println!(
        "curl -i {url} -H 'Authorization: Bearer alice-laptop' --json '{{\"order\":\"42\",\"cents\":1250}}'   # refused: 400"
    );
    match then {
        Then::End => println!("\nThe service has ended; `-- stay` lets it go on."),
        Then::Stay => {
            println!("\nThe service goes on. Ctrl-C ends it.");
            tokio::signal::ctrl_c().await?;
        }
    }
    Ok(())
}

/// The trouble that the first attempt of each call meets.
const TROUBLES: [Trouble; 10] = [
    Trouble::AnswerLost,
    Trouble::RequestLost,
    Trouble::CutInRequest,
    Trouble::CutInAnswer,
    Trouble::Silence,
    Trouble::None,
    Trouble::AnswerLost,
    Trouble::Silence,
    Trouble::CutInAnswer,
    Trouble::None,
];

/// One call, by a client that remembers nothing of those before it: as if its program had been
/// started anew.
async fn call(service: SocketAddr, key: &ClientKey) -> Result<Row, Failure> {
    let request = client()?
        .post(format!("http://{service}/charges"))
        .bearer_auth("alice-laptop")
        .json(&Charge {
            order: "42".into(),
            cents: 1250,
        })
        .with_extension(ClientCall::new().key(key.clone()));
    let response = request.send().await?;
    let outcome = ClientOutcome::from_response(&response)
        .ok_or("every response of this client has an outcome")?;
    Ok(Row {
        attempts: outcome.attempts,
        replayed: outcome.replayed,
        status: response.status().as_u16(),
        body: response.text().await?,
    })
}

fn client() -> Result<ClientWithMiddleware, Failure> {
    let limits = Limits::default()
        .attempts(5)
        .attempt_timeout(Duration::from_millis(500))
        .backoff(Duration::from_millis(50), Duration::from_millis(200));
    let keys = IdempotencyKeys::builder(Profile::ietf()).limits(limits);
    Ok(keys.client(reqwest::Client::builder())?)
}

/// One of several processes over one database, until the process that started it is gone. It says
/// where it listens.
async fn serve(database: &str, journal: &str) -> Result<(), Failure> {
    let idem = Idempotency::new(PostgresStore::connect(database).await?);
    println!("{}", service::start(idem, Journal::at(journal), 0).await?);
    tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await?;
    Ok(())
}
