//! The bank: it plans the transfers, sends each one to three times, kills the ledger, and counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use super::{
    Failure, Transfer,
    ledger::{self, Work},
};

const ACCOUNTS: i64 = 8;
const BALANCE: i64 = 10_000;
const TRANSFERS: u32 = 200;
const KILLS: u32 = 10;

/// All that the bank has seen.
#[derive(Default)]
struct Seen {
    sent: u32,
    replayed: u32,
    kills: u32,
    /// Calls that had begun and had no answer when the ledger was killed.
    cut: usize,
}

/// The books as they stand in the file, by plain SQL.
struct Books {
    /// How often each transfer was applied.
    applied: BTreeMap<u32, i64>,
    balances: Vec<i64>,
}

pub(super) fn run(protected: bool) -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("ledger.db");
    create(&file)?;
    let plan = plan();
    let mut open: BTreeMap<usize, Transfer> = deliveries(&plan);
    let planned = open.len();
    let mut seen = Seen::default();
    while !open.is_empty() {
        let work = Work {
            file: file.clone(),
            protected,
            deliveries: open.iter().map(|(number, it)| (*number, *it)).collect(),
        };
        work_until_killed(&work, &mut open, &mut seen)?;
    }
    let books = read(&file)?;
    println!(
        "{ACCOUNTS} accounts of {}, {TRANSFERS} transfers, each sent one to three times by eight tasks at once.",
        money(BALANCE)
    );
    println!(
        "The ledger was killed {} times with SIGKILL, while {} calls were open.\n",
        seen.kills, seen.cut
    );
    Ok(report(&plan, planned, &seen, &books))
}

/// Starts the ledger, and reads what it says. It is killed when it has begun some calls, until
/// there were enough kills; one counts only where a call was open.
fn work_until_killed(
    work: &Work,
    open: &mut BTreeMap<usize, Transfer>,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let mut ledger = Command::new(env::current_exe()?)
        .args([ledger::ROLE, &serde_json::to_string(work)?])
        .stdout(Stdio::piped())
        .spawn()?;
    let said = ledger.stdout.take().ok_or("the ledger says nothing")?;
    let mut begun = BTreeSet::new();
    let mut until_kill = 15 + seen.kills;
    let mut was_killed = false;
    for line in BufReader::new(said).lines() {
        let line = line?;
        let Some((word, number)) = line.split_once(' ') else {
            // The last line of a process that was killed may be cut.
            continue;
        };
        let number: usize = number.parse()?;
        if word == "begin" {
            seen.sent += 1;
            begun.insert(number);
            until_kill = until_kill.saturating_sub(1);
        } else {
            seen.replayed += u32::from(word == "replayed");
            begun.remove(&number);
            open.remove(&number);
        }
        if until_kill == 0 && seen.kills < KILLS && !was_killed {
            ledger.kill()?;
            was_killed = true;
        }
    }
    let ended = ledger.wait()?;
    if was_killed && !begun.is_empty() {
        seen.kills += 1;
        seen.cut += begun.len();
    }
    if !was_killed && !ended.success() {
        return Err(format!("the ledger failed: {ended}").into());
    }
    Ok(())
}

fn report(plan: &[Transfer], planned: usize, seen: &Seen, books: &Books) -> ExitCode {
    let applied: i64 = books.applied.values().sum();
    let sum: i64 = books.balances.iter().sum();
    println!(
        "  sent      {:>5}   {planned} as planned, the others again after a kill",
        seen.sent
    );
    println!("  applied   {applied:>5}");
    println!("  replayed  {:>5}\n", seen.replayed);
    println!("The balances are {} in sum.", money(sum));
    let mut expected = vec![BALANCE; ACCOUNTS as usize];
    for transfer in plan {
        expected[transfer.from as usize] -= transfer.cents;
        expected[transfer.to as usize] += transfer.cents;
    }
    let once = plan.iter().all(|it| books.applied.get(&it.id) == Some(&1));
    let mut wrong = Vec::new();
    if !once || applied != i64::from(TRANSFERS) {
        wrong.push(format!(
            "{TRANSFERS} transfers were applied {applied} times"
        ));
    }
    if books.balances != expected {
        wrong.push("the balances are not those of the plan".to_owned());
    }
    if seen.kills < KILLS {
        wrong.push(format!("only {} kills hit an open call", seen.kills));
    }
    for wrong in &wrong {
        println!("WRONG: {wrong}.");
    }
    if wrong.is_empty() {
        println!("Each transfer was applied once, and every account has what the plan says.");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// The same transfers at every start.
fn plan() -> Vec<Transfer> {
    let mut drawn = draws();
    let mut draw = move |below: i64| i64::from(drawn()) % below;
    (0..TRANSFERS)
        .map(|id| {
            let from = draw(ACCOUNTS);
            Transfer {
                id,
                from,
                to: (from + 1 + draw(ACCOUNTS - 1)) % ACCOUNTS,
                cents: 1 + draw(500),
            }
        })
        .collect()
}

/// Each transfer one to three times, the copies apart from each other and close by.
fn deliveries(plan: &[Transfer]) -> BTreeMap<usize, Transfer> {
    let mut draw = draws();
    let copies = plan.iter().flat_map(|transfer| {
        let copies = 1 + draw() % 3;
        (0..copies).map(move |copy| (10 * transfer.id + 15 * copy, *transfer))
    });
    let mut sent: Vec<(u32, Transfer)> = copies.collect();
    sent.sort_by_key(|(when, _)| *when);
    sent.into_iter().map(|(_, it)| it).enumerate().collect()
}

/// Numbers as by chance, the same ones at every start.
fn draws() -> impl FnMut() -> u32 {
    let mut state = 1_u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32
    }
}

#[tokio::main(flavor = "current_thread")]
async fn create(file: &Path) -> Result<(), Failure> {
    let pool = ledger::open(file).await?;
    let tables = "CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
         CREATE TABLE entries (transfer INTEGER NOT NULL, account INTEGER NOT NULL, cents INTEGER NOT NULL)";
    sqlx::raw_sql(tables).execute(&pool).await?;
    for account in 0..ACCOUNTS {
        let opened = sqlx::query("INSERT INTO accounts VALUES (?, ?)");
        opened.bind(account).bind(BALANCE).execute(&pool).await?;
    }
    pool.close().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn read(file: &Path) -> Result<Books, Failure> {
    let pool = ledger::open(file).await?;
    let applied = "SELECT transfer, count(*) / 2 FROM entries GROUP BY transfer";
    let applied: Vec<(u32, i64)> = sqlx::query_as(applied).fetch_all(&pool).await?;
    let balances = "SELECT cents FROM accounts ORDER BY id";
    let books = Books {
        applied: applied.into_iter().collect(),
        balances: sqlx::query_scalar(balances).fetch_all(&pool).await?,
    };
    pool.close().await;
    Ok(books)
}
