//! The client: it makes one charge ten times, because it often does not hear the answer.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    Failure,
    choices::{ChildKey, Choices, Crash},
    gateway,
    process::Process,
    service,
    table::{Came, Table},
    wire::{self, Charge, Receipt, Refusal, Request},
};

/// Plays the whole story, and prints it.
pub(crate) async fn run(choices: Choices) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut world = World::begin(folder.path(), choices).await?;
    let charge = Charge {
        order: "order-42".to_owned(),
        merchant: "merchant-7".to_owned(),
        amount: 1_250,
    };
    world.introduce(&charge);
    let mut table = Table::begin(&charge);

    killed_after_the_charge(&mut world, &mut table, &charge).await?;
    again_after_the_kill(&mut world, &mut table, &charge).await?;
    two_at_once(&mut world, &mut table, &charge).await?;
    for call in 3..=10 {
        if call == 4 || call == 7 {
            answer_is_lost(&world, &mut table, &charge, call).await?;
        }
        let (came, after) = sent(world.service.address, charge.clone()).await;
        table.row(call, charge.amount, &came, after, "");
    }
    let changed = Charge {
        amount: 9_900,
        ..charge
    };
    let (came, after) = sent(world.service.address, changed.clone()).await;
    table.row(11, changed.amount, &came, after, "the amount was changed");

    table.end(&gateway::read_log(&world.log)?);
    if let Ok(Err(Refusal { code, text })) = came {
        println!("One more call, with a changed amount, was refused. {code}: {text}.");
    }
    Ok(())
}

/// Call 1: the gateway charges, and before the service hears of it, it is killed.
async fn killed_after_the_charge(
    world: &mut World,
    table: &mut Table,
    charge: &Charge,
) -> Result<(), Failure> {
    world.gateway.tell("hold").await?;
    let request = tokio::spawn(sent(world.service.address, charge.clone()));
    world.gateway.says("charged").await?;
    world.service.kill()?;
    let (came, after) = request.await?;
    let note = "the gateway charged; the service was killed (SIGKILL) before it recorded that";
    table.row(1, charge.amount, &came, after, note);
    world.service = Process::start(service::ROLE, &world.settings).await?;
    Ok(())
}

/// Call 1, again: the lease of the dead service must end first. Then the new one takes over, and
/// the client gives up while the gateway is at work. Or it is unknown what happened, and an
/// operator finds out.
async fn again_after_the_kill(
    world: &mut World,
    table: &mut Table,
    charge: &Charge,
) -> Result<(), Failure> {
    let began = Instant::now();
    let request = sent(world.service.address, charge.clone());
    let (came, note) = tokio::select! {
        (came, _) = request => (came, "by a new service, when the lease had ended"),
        word = world.gateway.line() => (
            Err(io::ErrorKind::TimedOut.into()),
            match &*word? {
                "recognised" => "a new service took over when the lease had ended; the gateway knew the key; the client gave up",
                _ => "a new service took over when the lease had ended; the gateway charged AGAIN; the client gave up",
            },
        ),
    };
    table.row(1, charge.amount, &came, began.elapsed(), note);
    match came {
        Ok(Err(refusal)) if refusal.code == "Uncertain" => world.settle(charge).await,
        _ => Ok(()),
    }
}

/// Calls 1 and 2: both at once, and the first request is still being worked on, unless it was
/// settled.
async fn two_at_once(world: &mut World, table: &mut Table, charge: &Charge) -> Result<(), Failure> {
    let requests = [(); 2].map(|()| tokio::spawn(sent(world.service.address, charge.clone())));
    let runs = world.choices.on_crash == Crash::Rerun;
    if runs {
        world.service.says("TakenOver").await?;
        for _ in 0..2 {
            world.service.says("Waiting").await?;
        }
    }
    world.gateway.tell("go on").await?;
    for (request, call) in requests.into_iter().zip([1, 2]) {
        let (came, after) = request.await?;
        let note = match (call, runs) {
            (1, true) => "both at once, while the request before was still being worked on",
            (1, false) => "both at once",
            _ => "",
        };
        table.row(call, charge.amount, &came, after, note);
    }
    Ok(())
}

/// The client sends, and hangs up before it has read the answer.
async fn answer_is_lost(
    world: &World,
    table: &mut Table,
    charge: &Charge,
    call: u32,
) -> Result<(), Failure> {
    let began = Instant::now();
    let request = Request::Charge(charge.clone());
    drop(wire::send(world.service.address, &request).await?);
    let came = Err(io::ErrorKind::TimedOut.into());
    let note = "the client hung up before it heard the answer";
    table.row(call, charge.amount, &came, began.elapsed(), note);
    Ok(())
}

async fn sent(service: SocketAddr, charge: Charge) -> (Came, Duration) {
    let began = Instant::now();
    let came = wire::ask(service, &Request::Charge(charge)).await;
    (came, began.elapsed())
}

/// The processes that the client deals with.
struct World {
    choices: Choices,
    settings: service::Settings,
    log: PathBuf,
    gateway: Process,
    service: Process,
}

impl World {
    async fn begin(folder: &Path, choices: Choices) -> Result<Self, Failure> {
        let log = folder.join("gateway.log");
        let gateway =
            Process::start(gateway::ROLE, &gateway::Settings { log: log.clone() }).await?;
        let settings = service::Settings {
            database: folder.join("idempotency.db"),
            gateway: gateway.address,
            choices,
        };
        let service = Process::start(service::ROLE, &settings).await?;
        Ok(Self {
            choices,
            settings,
            log,
            gateway,
            service,
        })
    }

    fn introduce(&self, charge: &Charge) {
        println!(
            "The client (process {}) charges {} to {} at the service (process {}), which asks the gateway (process {}).",
            std::process::id(),
            charge.order,
            charge.merchant,
            self.service.id(),
            self.gateway.id()
        );
        println!(
            "The lease is {}, a crash means {}, and the child key is {}.\n",
            service::LEASE,
            match self.choices.on_crash {
                Crash::Rerun => "that the next call runs again",
                Crash::Uncertain => "that it is unknown, until an operator settles it",
            },
            match self.choices.child_key {
                ChildKey::Forwarded => "forwarded to the gateway",
                ChildKey::LeftOut => "NOT forwarded to the gateway",
            }
        );
    }

    /// An operator looks the order up in the gateway's log, and settles the record with what stands
    /// there.
    async fn settle(&self, charge: &Charge) -> Result<(), Failure> {
        let entry = gateway::read_log(&self.log)?
            .into_iter()
            .find(|entry| entry.order == charge.order)
            .ok_or("the gateway knows nothing of the order")?;
        let receipt = Receipt {
            charge: entry.charge,
            amount: entry.amount,
        };
        let request = Request::Settle(charge.clone(), receipt);
        let settled: Result<Receipt, Refusal> = wire::ask(self.service.address, &request).await?;
        let receipt = settled.map_err(|refusal| refusal.text)?;
        println!(
            "      an operator finds {} in the gateway's log, and settles the call with it",
            receipt.charge
        );
        Ok(())
    }
}
