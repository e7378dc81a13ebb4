//! Steps: a body goes on where an earlier attempt of it stopped.

mod doubts;
mod front_ends;
mod kit;
mod losses;
mod names;
mod reruns;
mod sagas;
mod settled;
mod transactions;
mod values;

use idempotent_runtime::{Error, StepContext, testing::Gate};
use tokio::task::JoinHandle;

use crate::{
    charge::LEASE,
    harness::{Owner, World},
};

/// How many parts a trip has.
const PARTS: u32 = 4;

/// A call of four steps in a row, each with an effect, which stops where a scenario wants it to.
#[derive(Clone)]
struct Trip {
    world: World,
    owner: Owner,
    /// Behind which part it stands at a gate.
    gate: Option<(u32, Gate)>,
    /// Behind which part it returns an error of ours.
    fails_after: Option<u32>,
}

impl Trip {
    fn of(world: &World, owner: &Owner) -> Self {
        Self {
            world: world.clone(),
            owner: owner.clone(),
            gate: None,
            fails_after: None,
        }
    }

    fn held_after(mut self, part: u32, gate: &Gate) -> Self {
        self.gate = Some((part, gate.clone()));
        self
    }

    fn failing_after(mut self, part: u32) -> Self {
        self.fails_after = Some(part);
        self
    }

    async fn call(&self) -> Result<Vec<String>, Error> {
        let trip = self.clone();
        let call = self.owner.call("trip").key("k").arguments(&PARTS);
        call.run(async |_| trip.body().await).await
    }

    fn spawn(&self) -> JoinHandle<Result<Vec<String>, Error>> {
        let trip = self.clone();
        tokio::spawn(async move { trip.call().await })
    }

    /// Dies behind a part: from then on nothing of the owner reaches the store.
    async fn vanishes_after(self, part: u32) {
        let (gate, owner) = (Gate::new(), self.owner.clone());
        let call = self.held_after(part, &gate).spawn();
        gate.arrived(1).await;
        owner.die_in(call).await;
    }

    async fn body(self) -> Result<Vec<String>, Error> {
        let mut keys = Vec::new();
        for part in 1..=PARTS {
            keys.push(self.part(part).await?);
            if let Some((_, gate)) = self.gate.as_ref().filter(|(after, _)| *after == part) {
                gate.pass().await;
            }
            if self.fails_after == Some(part) {
                return Err(Error::InvalidPolicy("a planned error of ours"));
            }
        }
        Ok(keys)
    }

    /// One step, which gives its key.
    async fn part(&self, part: u32) -> Result<String, Error> {
        let body = async |s: StepContext| {
            self.world.happened(&format!("part {part}"));
            Ok::<_, Error>(s.key())
        };
        idempotent_runtime::step(("part", part), body)
            .arguments(&part)
            .await
    }

    /// How often each part has happened.
    fn runs(&self) -> Vec<usize> {
        let parts = 1..=PARTS;
        parts
            .map(|part| self.world.runs(&format!("part {part}")))
            .collect()
    }
}

/// Another client, once the lease of the one before is over.
async fn successor(world: &World) -> Owner {
    world.advance(LEASE).await;
    world.owner().await
}
