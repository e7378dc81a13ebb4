//! One question and one answer on each connection, a line of JSON each.

use std::{fmt, future::Future, io, net::SocketAddr};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::Failure;

/// The charge that a client asks the service for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) order: String,
    pub(crate) merchant: String,
    /// In cents.
    pub(crate) amount: u64,
}

/// The receipt that it gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) charge: String,
    pub(crate) amount: u64,
}

/// Everything that the service can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// By a client.
    Charge(Charge),
    /// By an operator, who found out what became of a charge.
    Settle(Charge, Receipt),
}

/// Why there is no receipt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(code: &str, text: impl fmt::Display) -> Self {
        Self {
            code: code.to_owned(),
            text: text.to_string(),
        }
    }
}

/// Sends a question and waits for its answer; dropped meanwhile, it hangs up.
pub(crate) async fn ask<Q, A>(address: SocketAddr, question: &Q) -> io::Result<A>
where
    Q: Serialize,
    A: DeserializeOwned,
{
    let mut connection = send(address, question).await?;
    read(&mut connection).await
}

/// Sends a question; the answer can be read from the connection.
pub(crate) async fn send<Q: Serialize>(
    address: SocketAddr,
    question: &Q,
) -> io::Result<BufReader<TcpStream>> {
    let mut connection = BufReader::new(TcpStream::connect(address).await?);
    write(&mut connection, question).await?;
    Ok(connection)
}

/// Says where it listens, on standard output, and answers every question in a task of its own.
pub(crate) async fn serve<Q, A, F>(
    answer: impl Fn(Q) -> F + Clone + Send + 'static,
) -> Result<(), Failure>
where
    Q: DeserializeOwned + Send,
    A: Serialize + Send + Sync,
    F: Future<Output = A> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (connection, _) = listener.accept().await?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let mut connection = BufReader::new(connection);
            if let Ok(question) = read(&mut connection).await {
                let answer = answer(question).await;
                // A client that hung up meanwhile gets no answer.
                let _ = write(&mut connection, &answer).await;
            }
        });
    }
}

async fn write<T: Serialize>(connection: &mut BufReader<TcpStream>, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    connection.write_all(&line).await
}

async fn read<T: DeserializeOwned>(connection: &mut BufReader<TcpStream>) -> io::Result<T> {
    let mut line = String::new();
    connection.read_line(&mut line).await?;
    Ok(serde_json::from_str(&line)?)
}
