//! The source: it delivers the events to the worker, and kills it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use super::{
    Failure, plan,
    worker::{self, Work},
};

pub(super) const KILLS: u64 = 10;

/// All that the source has seen.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) delivered: usize,
    pub(super) gaps: usize,
    pub(super) kills: u64,
    /// Deliveries that had begun and had not ended when the worker was killed.
    pub(super) cut: usize,
    /// The deliveries that have not ended, each with the number of its event.
    open: BTreeMap<usize, u64>,
    /// Those of them that this worker has begun.
    begun: BTreeSet<usize>,
}

/// Delivers until each delivery has ended.
pub(super) fn deliver(file: &Path, protected: bool) -> Result<Seen, Failure> {
    let mut seen = Seen {
        open: plan::deliveries(),
        ..Seen::default()
    };
    let mut draw = plan::draws();
    while !seen.open.is_empty() {
        let open = seen.open.iter().map(|(it, number)| (*it, *number));
        let worker = start(&Work {
            file: file.to_owned(),
            protected,
            deliveries: open.collect(),
        })?;
        work_until_killed(worker, &mut seen, &mut draw)?;
    }
    Ok(seen)
}

/// Starts this program again as the worker, and hands it the work.
fn start(work: &Work) -> Result<Child, Failure> {
    let mut worker = Command::new(env::current_exe()?)
        .arg(worker::ROLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = worker.stdin.take().ok_or("the worker hears nothing")?;
    input.write_all(&serde_json::to_vec(work)?)?;
    Ok(worker)
}

/// Reads what the worker says. It is killed at some moment after some lines, until there were
/// enough kills; one counts only where a delivery was open.
fn work_until_killed(
    mut worker: Child,
    seen: &mut Seen,
    mut draw: impl FnMut(u64) -> u64,
) -> Result<(), Failure> {
    let said = worker.stdout.take().ok_or("the worker says nothing")?;
    let mut until_kill = 50 + draw(200);
    let mut was_killed = false;
    seen.begun.clear();
    for line in BufReader::new(said).lines() {
        seen.hear(&line?)?;
        until_kill = until_kill.saturating_sub(1);
        if until_kill == 0 && seen.kills < KILLS && !was_killed {
            thread::sleep(Duration::from_micros(draw(3000)));
            worker.kill()?;
            was_killed = true;
        }
    }
    let ended = worker.wait()?;
    if was_killed && !seen.begun.is_empty() {
        seen.kills += 1;
        seen.cut += seen.begun.len();
    }
    if !was_killed && !ended.success() {
        return Err(format!("the worker failed: {ended}").into());
    }
    Ok(())
}

impl Seen {
    /// Notes a line that the worker said.
    fn hear(&mut self, line: &str) -> Result<(), Failure> {
        let (word, delivery) = line.split_once(' ').ok_or("the worker says nonsense")?;
        let delivery: usize = delivery.parse()?;
        match word {
            "begin" => {
                self.delivered += 1;
                self.begun.insert(delivery);
            }
            "gap" => self.gaps += 1,
            _ => {
                self.begun.remove(&delivery);
                self.open.remove(&delivery);
            }
        }
        Ok(())
    }
}
