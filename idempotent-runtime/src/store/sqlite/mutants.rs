//! Takes each condition out of the statements, one at a time: a case of the suite for stores must tell.
//!
//! Left out is what decides how fast a statement is and not what it does: the bounds on `purge_from` beside those on `expires`, and the
//! looks after a write that was applied. So is what counts only between two connections to one file, `ON CONFLICT DO NOTHING`.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::AssertSqlSafe;

use super::{Inner, SqliteStore, Statements};
use crate::{
    record::micros,
    store::{
        Store,
        mutants::{Mutation, each_is_noticed},
        sql::TablePrefix,
    },
    testing::conformance::Subject,
};

/// Which statement it is taken out of.
#[derive(Clone, Copy, Debug)]
enum Of {
    Load,
    Create,
    Replace,
    Finish,
    Purge,
    Scan,
}

const MUTATIONS: [Mutation<Of>; 28] = [
    Mutation(
        Of::Load,
        "ON id = ?1",
        "ON ?1 IS NOT NULL",
        "nothing_stands_under_a_new_id",
    ),
    Mutation(
        Of::Create,
        "WHERE id = ?1\n",
        "WHERE ?1 IS NOT NULL\n",
        "many_ids_at_once_do_not_mix",
    ),
    Mutation(
        Of::Create,
        "max(?9, now)",
        "now",
        "a_token_follows_a_floor_above_the_clock",
    ),
    Mutation(
        Of::Create,
        "max(?9, now)",
        "max(?9, 0)",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Of::Create,
        "min(?15, 9223372036854775807 - now)",
        "?15",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Of::Create,
        "min(?16, 9223372036854775807 - now)",
        "?16",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Of::Create,
        "CASE ?8 WHEN 1 THEN NULL ELSE now END",
        "now",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Of::Create,
        "now + max(0, coalesce(min(?16, 9223372036854775807 - now), 0) - coalesce(?15, 0))",
        "9223372036854775807",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Of::Replace,
        "id = ?1 AND version",
        "version",
        "ids_and_versions_are_compared_whole",
    ),
    Mutation(
        Of::Replace,
        "version = ?20",
        "?20 IS NOT NULL",
        "a_stale_owner_cannot_prolong",
    ),
    Mutation(
        Of::Replace,
        "max(?9, now)",
        "?9 + 1",
        "tokens_grow_over_takeovers",
    ),
    Mutation(
        Of::Replace,
        "max(?9, now)",
        "?9 - ?9 + now",
        "a_token_follows_a_floor_above_the_clock",
    ),
    Mutation(
        Of::Replace,
        "coalesce(max(?9, now), token)",
        "max(coalesce(?9, 0), now)",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Of::Replace,
        "coalesce(now + min(?15, 9223372036854775807 - now), lease_end)",
        "now",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Of::Replace,
        "coalesce(now + min(?16, 9223372036854775807 - now), expires)",
        "now",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Of::Replace,
        "CASE WHEN ?3 IS NULL THEN created ELSE now END",
        "now",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Of::Replace,
        "CASE WHEN ?3 IS NULL THEN created ELSE now END",
        "created",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Of::Replace,
        "now + max(0, min(?16, 9223372036854775807 - now) - coalesce(?15, 0))",
        "NULL",
        "purge_deletes_what_was_resumed_and_left",
    ),
    Mutation(
        Of::Finish,
        "id = ?1 AND version",
        "version",
        "ids_and_versions_are_compared_whole",
    ),
    Mutation(
        Of::Finish,
        "version = ?20",
        "?20 IS NOT NULL",
        "a_stale_owner_cannot_complete",
    ),
    Mutation(
        Of::Finish,
        "AND purge_from <=",
        "AND 0 <=",
        "what_is_kept_stays_until_then",
    ),
    Mutation(
        Of::Purge,
        "AND expires <= now - ?2",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Of::Purge,
        "expires <= now - ?2",
        "expires <= now",
        "purge_counts_what_is_kept_from_its_expiry",
    ),
    Mutation(
        Of::Purge,
        "state IN (2, 3)",
        "true",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Of::Purge,
        "AND on_crash = 1",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Of::Purge,
        "AND lease_end <= now",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Of::Purge,
        "LIMIT ?1",
        "LIMIT ?1 + 1",
        "purge_goes_in_bounded_batches",
    ),
    Mutation(Of::Scan, "id > ?1", "id >= ?1", "scan_goes_in_pages"),
];

/// The statements of a store, with this mutation if there is one.
fn statements(mutation: Option<Mutation<Of>>) -> Statements {
    let mut statements = Statements::new(&TablePrefix::default());
    if let Some(mutation) = mutation {
        let statement = match mutation.0 {
            Of::Load => &mut statements.load,
            Of::Create => &mut statements.create,
            Of::Replace => &mut statements.replace,
            Of::Finish => &mut statements.finish,
            Of::Purge => &mut statements.purge,
            Of::Scan => &mut statements.scan,
        };
        *statement = mutation.mutated(statement, &[]).into();
    }
    statements
}

/// A store in memory with statements of a test's.
struct Mutant(SqliteStore);

impl Mutant {
    async fn new(statements: Statements) -> Self {
        let sound = SqliteStore::in_memory().await.expect("memory opens");
        let another = sound.inner.connections.another("testing").await;
        let inner = Inner {
            connections: another.expect("memory opens again").expect("it has a name"),
            statements: Arc::new(statements),
            prefix: TablePrefix::default(),
            waiters: Arc::default(),
            line: None,
        };
        Self(SqliteStore {
            inner: Arc::new(inner),
        })
    }
}

#[async_trait]
impl Subject for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    async fn advance(&self, by: Duration) {
        let ageing = format!(
            "UPDATE {}records SET lease_end = lease_end - ?1, created = created - ?1, finished = finished - ?1,
             expires = expires - ?1, purge_from = purge_from - ?1",
            self.0.inner.prefix
        );
        let connection = self.0.inner.connections.acquire("testing").await;
        sqlx::query(AssertSqlSafe(ageing))
            .bind(micros(by))
            .execute(&mut *connection.expect("memory is open"))
            .await
            .expect("the records age");
    }
}

#[tokio::test]
async fn l07_no_condition_of_a_statement_goes_missing_unnoticed() {
    each_is_noticed(&MUTATIONS, async |mutation| {
        Mutant::new(statements(mutation)).await
    })
    .await;
}
