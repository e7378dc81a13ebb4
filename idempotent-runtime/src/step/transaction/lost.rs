//! Commits a step, and finds a commit out whose answer is lost.

use std::time::Duration;

use sqlx::{Pool, Transaction};

use crate::{
    error::Error,
    race::race,
    record::{Step, Version},
    step::permit::Permit,
    store::{StepWrite, StoreError, StoreErrorKind, sealed::Sealed as _},
    transaction::{
        CommitFailure, Isolation, LONGEST_SILENCE, OwnedConnection, SqlDatabase, silence, silent,
    },
};

/// How long one look at a commit may take, and how long it is until the next.
const ONE_LOOK: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Commits, and finds out a commit whose answer is lost by the step's row.
pub(super) async fn commit<DB: SqlDatabase>(
    permit: &Permit,
    tx: Transaction<'_, DB>,
    pool: &Pool<DB>,
    done: &Step,
) -> Result<(), Error> {
    let (timer, until) = (permit.engine.timer(), permit.lease.ends());
    let committed = race(tx.commit(), timer.sleep(LONGEST_SILENCE)).await;
    let Err(error) = committed.unwrap_or_else(|| Err(silent())) else {
        return Ok(());
    };
    match CommitFailure::of::<DB>(error) {
        CommitFailure::Conflict(error) | CommitFailure::Refused(error) => return Err(error.into()),
        CommitFailure::Unknown => {}
    }
    match find_out(permit, pool, done, until).await {
        Some(true) => Ok(()),
        Some(false) => Err(silence::<DB>().into()),
        None => {
            let error = StoreError::new(StoreErrorKind::Unavailable, "committing a step");
            permit.poison(&error);
            Err(error.into())
        }
    }
}

/// Looks until the database tells whether the step stands, for as long as the lease stood when the
/// commit was sent.
async fn find_out<DB: SqlDatabase>(
    permit: &Permit,
    pool: &Pool<DB>,
    done: &Step,
    until: Duration,
) -> Option<bool> {
    let timer = permit.engine.timer();
    while timer.now() < until {
        match race(stands(permit, pool, done), timer.sleep(ONE_LOOK)).await {
            Some(Ok(stands)) => return Some(stands),
            Some(Err(error)) => tracing::debug!(%error, "a commit is not found out yet"),
            None => tracing::debug!("the database is silent about a commit"),
        }
        timer.sleep(PAUSE).await;
    }
    None
}

/// Tells whether the step stands. It looks by a write, which waits while the earlier transaction is
/// still open, and is rolled back.
async fn stands<DB: SqlDatabase>(
    permit: &Permit,
    pool: &Pool<DB>,
    done: &Step,
) -> Result<bool, StoreError> {
    let mut owned = OwnedConnection::acquire(pool).await?;
    let mut tx = owned.begin(Some(Isolation::ReadCommitted)).await?;
    let probe = Step {
        version: Version::random(),
        ..done.clone()
    };
    let found = permit.try_write_in(tx.connection(), None, &probe).await?;
    if tx.rollback().await.is_ok() {
        owned.give_back().await;
    }
    Ok(match found {
        StepWrite::Stands(step) => step.version == done.version,
        StepWrite::Written | StepWrite::Lost(_) => false,
    })
}
