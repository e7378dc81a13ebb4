//! The payment gateway, the system of another company: it charges, writes that down, and recognises
//! a key that it has seen.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{
    Failure, process,
    service::PayError,
    wire::{self, Charge, Receipt, Refusal},
};

/// The gateway as its customers see it.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) forwards_key: bool,
}

impl Gateway {
    /// Charges; twice with one key is once. Without a key, every request is a charge.
    pub(crate) async fn charge(&self, req: &Charge, key: String) -> Result<Receipt, PayError> {
        let question = Question {
            order: req.order.clone(),
            amount: req.amount,
            key: self.forwards_key.then_some(key),
        };
        let answer: Answer = wire::ask(self.address, &question)
            .await
            .map_err(|error| PayError::Unreachable(error.to_string()))?;
        answer.map_err(|refusal| match &*refusal.code {
            DECLINED => PayError::Declined,
            _ => PayError::Unreachable(refusal.text),
        })
    }
}

/// The code of a refusal that is final.
const DECLINED: &str = "Declined";

type Answer = Result<Receipt, Refusal>;

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    order: String,
    amount: u64,
    key: Option<String>,
}

/// One line of the gateway's log: a request that it saw.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) order: String,
    pub(crate) amount: u64,
    pub(crate) key: Option<String>,
    /// The charge that answers it.
    pub(crate) charge: String,
    /// Whether that charge was made for this very request.
    pub(crate) is_new: bool,
}

/// The first argument of the process that runs [`run`].
pub(crate) const ROLE: &str = "gateway";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) log: PathBuf,
}

/// Serves until the client goes away. The client may ask it to `hold` its answers, until it says
/// `go on`.
pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    let (hold, held) = watch::channel(false);
    process::listen_to_parent(move |word| {
        hold.send_replace(word == "hold");
        println!("{word}");
    });
    let book = Arc::new(Mutex::new(Book::open(&settings.log)?));
    wire::serve(move |question: Question| {
        let (book, mut held) = (Arc::clone(&book), held.clone());
        async move {
            if question.amount == 0 {
                return Err(Refusal::new(DECLINED, "there is nothing to charge"));
            }
            let entry = book
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .enter(question)
                .map_err(|error| Refusal::new("LogNotWritten", error))?;
            if *held.borrow() {
                // The charge is made, and its answer stays here: this is the moment to lose it.
                println!(
                    "{}",
                    if entry.is_new {
                        "charged"
                    } else {
                        "recognised"
                    }
                );
                let _ = held.wait_for(|held| !held).await;
            }
            Ok(Receipt {
                charge: entry.charge,
                amount: entry.amount,
            })
        }
    })
    .await
}

/// The charges that were made, and the log that outlives the process.
struct Book {
    log: File,
    charges: u32,
    by_key: HashMap<String, String>,
}

impl Book {
    fn open(log: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        Ok(Self {
            log,
            charges: 0,
            by_key: HashMap::new(),
        })
    }

    /// Charges, unless the key is known, and writes the request down.
    fn enter(&mut self, question: Question) -> io::Result<Entry> {
        let known = question.key.as_ref().and_then(|key| self.by_key.get(key));
        let is_new = known.is_none();
        let charge = known.cloned().unwrap_or_else(|| {
            self.charges += 1;
            format!("ch_{}", self.charges)
        });
        if let Some(key) = &question.key {
            self.by_key.insert(key.clone(), charge.clone());
        }
        let entry = Entry {
            order: question.order,
            amount: question.amount,
            key: question.key,
            charge,
            is_new,
        };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.log.write_all(&line)?;
        self.log.sync_data()?;
        Ok(entry)
    }
}

/// Reads a gateway's log.
pub(crate) fn read_log(log: &Path) -> Result<Vec<Entry>, Failure> {
    let text = std::fs::read_to_string(log)?;
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?)
}
