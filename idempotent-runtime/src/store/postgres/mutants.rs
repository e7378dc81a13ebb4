//! Takes the conditions and the fields out of the statements, one at a time: a case of the suite for stores must tell.
//!
//! Left out is what decides how fast a statement is and not what it does: the bounds on `purge_from` beside those on `expires`,
//! and all that is known beside a version. So is what the tests of notifications tell, because a wait ends without one, too.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Connection, Executor, postgres::PgConnection};

use super::{
    Inner, PostgresStore, Statements,
    rows::Way,
    statements::{ARRIVED, NOW},
};
use crate::{
    store::{
        Store,
        mutants::{Mutation, ageing, each_is_noticed},
        sql::upgrade,
    },
    testing::conformance::Subject,
};

/// Which statement it is taken out of.
#[derive(Clone, Copy, Debug)]
enum Of {
    Load,
    Again,
    Create,
    Replace,
    Complete,
    Purge,
    Scan,
}

use Of::{Again, Complete, Create, Load, Purge, Replace, Scan};

const MUTATIONS: &[Mutation<Of>] = &[
    Mutation(
        Load,
        "ON id = $1::bytea",
        "ON $1::bytea IS NOT NULL",
        "nothing_stands_under_a_new_id",
    ),
    Mutation(Load, "LEFT JOIN", "JOIN", "nothing_stands_under_a_new_id"),
    Mutation(
        Load,
        "SELECT NOW AS now",
        "SELECT 0::bigint AS now",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Again,
        "version = $2::bytea",
        "$2::bytea IS NOT NULL",
        "a_claim_of_what_is_done_is_shown_what_stands",
    ),
    Mutation(
        Again,
        "SELECT NOW",
        "SELECT 0::bigint",
        "a_claim_of_what_is_done_is_shown_what_stands",
    ),
    Mutation(
        Again,
        "SELECT NOW",
        "SELECT expires",
        "a_claim_of_what_is_done_is_shown_what_stands",
    ),
    Mutation(
        Create,
        "greatest($9::bigint, now)",
        "now",
        "a_token_follows_a_floor_above_the_clock",
    ),
    Mutation(
        Create,
        "greatest($9::bigint, now)",
        "$9::bigint",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Create,
        "now + least(coalesce($15::bigint, 0), MAX - now)",
        "now + coalesce($15::bigint, 0)",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Create,
        "least(coalesce($15::bigint, 0)",
        "least($15::bigint",
        "where_nothing_stood_nothing_is_kept",
    ),
    Mutation(
        Create,
        "now + least(coalesce($16::bigint, 0), MAX - now)",
        "now + coalesce($16::bigint, 0)",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Create,
        "least(coalesce($16::bigint, 0)",
        "least($16::bigint",
        "where_nothing_stood_nothing_is_kept",
    ),
    Mutation(
        Create,
        "CASE WHEN $8::bigint = 1 THEN NULL ELSE now END",
        "now",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Create,
        "CASE WHEN $8::bigint = 1 THEN NULL ELSE now END",
        "NULL",
        "a_record_begins_in_any_state",
    ),
    Mutation(
        Create,
        "now + greatest(0,",
        "MAX - 0 * greatest(0,",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Create,
        "ON CONFLICT (id) DO NOTHING",
        "",
        "a_second_claim_is_refused_and_shown_what_stands",
    ),
    Mutation(
        Create,
        "WHERE id = $1::bytea AND NOT EXISTS",
        "WHERE NOT EXISTS",
        "a_sequence_is_that_of_the_model",
    ),
    Mutation(
        Create,
        "clock.now",
        "created",
        "a_claim_where_an_expired_record_stands_is_refused",
    ),
    Mutation(
        Replace,
        "WHERE id = $1::bytea AND version",
        "WHERE $1::bytea IS NOT NULL AND version",
        "ids_and_versions_are_compared_whole",
    ),
    Mutation(
        Replace,
        "version = $20::bytea",
        "$20::bytea IS NOT NULL",
        "a_stale_owner_cannot_prolong",
    ),
    Mutation(
        Replace,
        "coalesce($3::text, operation)",
        "operation",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "coalesce($4::bytea, scope)",
        "scope",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "coalesce($5::bytea, call_key)",
        "call_key",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "coalesce($6::bytea, fingerprint)",
        "fingerprint",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "coalesce($7::bytea, digests)",
        "digests",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "state = $8::bigint",
        "state = state",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "greatest($9::bigint, now)",
        "now",
        "a_token_follows_a_floor_above_the_clock",
    ),
    Mutation(
        Replace,
        "greatest($9::bigint, now)",
        "$9::bigint",
        "tokens_grow_over_takeovers",
    ),
    Mutation(
        Replace,
        "THEN token ELSE",
        "THEN now ELSE",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "attempt = $10::bigint",
        "attempt = attempt",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "attempt_id = $11::bytea",
        "attempt_id = attempt_id",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "holder = $12::text",
        "holder = holder",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "trace_parent = $13::text",
        "trace_parent = trace_parent",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "on_crash = $14::bigint",
        "on_crash = on_crash",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "THEN lease_end",
        "THEN now",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "ELSE now + least($15::bigint, MAX - now)",
        "ELSE now + $15::bigint",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Replace,
        "ELSE now + least($15",
        "ELSE lease_end + least($15",
        "a_lease_ends_by_the_clock_of_the_store",
    ),
    Mutation(
        Replace,
        "THEN created ELSE now END",
        "THEN now ELSE now END",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "THEN created ELSE now END",
        "THEN created ELSE created END",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "CASE WHEN $8::bigint = 1 THEN NULL ELSE now END",
        "now",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "CASE WHEN $8::bigint = 1 THEN NULL ELSE now END",
        "coalesce(finished, now)",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "THEN expires",
        "THEN now",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "ELSE now + least($16::bigint, MAX - now)",
        "ELSE now + $16::bigint",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Replace,
        "outcome_kind = $17::bigint",
        "outcome_kind = coalesce($17::bigint, outcome_kind)",
        "a_claim_where_an_expired_record_stands_is_refused",
    ),
    Mutation(
        Replace,
        "outcome_schema = $18::bigint",
        "outcome_schema = outcome_schema",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "outcome = $19::bytea",
        "outcome = outcome",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "WHEN $15::bigint IS NULL THEN least(purge_from, now + least($16::bigint, MAX - now))",
        "WHEN $15::bigint IS NULL THEN purge_from",
        "a_purge_says_how_long_is_kept",
    ),
    Mutation(
        Replace,
        "AND purge_from < MAX",
        "",
        "purge_deletes_what_was_resumed_and_left",
    ),
    Mutation(
        Complete,
        "version = $3::bytea",
        "$3::bytea IS NOT NULL",
        "a_stale_owner_cannot_complete",
    ),
    Mutation(
        Complete,
        "state = 2",
        "state = state",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Complete,
        "finished = ARRIVED",
        "finished = created",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Complete,
        "expires = ARRIVED",
        "expires = created",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Complete,
        "expires = ARRIVED + least($4::bigint, MAX - ARRIVED)",
        "expires = ARRIVED + $4::bigint",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Complete,
        "outcome_kind = $5::bigint",
        "outcome_kind = 1 + 0 * $5::bigint",
        "any_outcome_comes_back",
    ),
    Mutation(
        Complete,
        "outcome_schema = $6::bigint",
        "outcome_schema = 0 * $6::bigint",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Complete,
        "outcome = $7::bytea",
        "outcome = outcome",
        "any_outcome_comes_back",
    ),
    Mutation(
        Complete,
        "purge_from = least(purge_from, ARRIVED + least($4::bigint, MAX - ARRIVED))",
        "purge_from = purge_from",
        "what_is_kept_stays_until_then",
    ),
    Mutation(
        Purge,
        "AND expires <= (SELECT now FROM clock) - $2::bigint",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "expires <= (SELECT now FROM clock) - $2::bigint",
        "expires <= (SELECT now FROM clock)",
        "purge_counts_what_is_kept_from_its_expiry",
    ),
    Mutation(
        Purge,
        "state IN (2, 3)",
        "true",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "state IN (2, 3)",
        "state = 2",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "state IN (2, 3)",
        "state = 3",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "AND on_crash = 1",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "AND lease_end <= (SELECT now FROM clock)",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Purge,
        "LIMIT $1::bigint",
        "LIMIT $1::bigint + 1",
        "purge_goes_in_bounded_batches",
    ),
    Mutation(Scan, "id > $1", "id >= $1", "scan_goes_in_pages"),
    Mutation(
        Scan,
        "ORDER BY id",
        "ORDER BY id DESC",
        "scan_lists_in_the_order_of_ids",
    ),
    Mutation(
        Scan,
        "LIMIT $2::bigint",
        "LIMIT $2::bigint + 1",
        "scan_goes_in_pages",
    ),
];

/// Clients of one table whose statements are these.
struct Mutant {
    sound: PostgresStore,
    statements: Arc<Statements>,
    url: String,
}

impl Mutant {
    async fn new(mutation: Option<Mutation<Of>>) -> Self {
        let url = std::env::var("IDEMPOTENT_TEST_POSTGRES_URL");
        let url = url.expect("`cargo xtask test` says where Postgres is");
        let prefix = upgrade::prefix();
        let builder = PostgresStore::builder().table_prefix(&prefix.to_string());
        let sound = builder.connect(&url).await.expect("the server answers");
        let mut statements = Statements::new(&prefix, Way::Prepared);
        if let Some(mutation) = mutation {
            let statement = match mutation.0 {
                Load => &mut statements.load,
                Again => &mut statements.again,
                Create => &mut statements.create,
                Replace => &mut statements.replace,
                Complete => &mut statements.complete,
                Purge => &mut statements.purge,
                Scan => &mut statements.scan,
            };
            let max = i64::MAX.to_string();
            let words = [("NOW", NOW), ("ARRIVED", ARRIVED), ("MAX", &max)];
            statement.text = mutation.mutated(&statement.text, &words).into();
        }
        Self {
            sound,
            statements: Arc::new(statements),
            url,
        }
    }
}

#[async_trait]
impl Subject for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        let sound = &self.sound.inner;
        Arc::new(PostgresStore {
            inner: Arc::new(Inner {
                connections: sound.connections.another(10),
                statements: Arc::clone(&self.statements),
                prefix: sound.prefix.clone(),
                waiters: Arc::default(),
                listening: Arc::default(),
                recent: Arc::default(),
            }),
        })
    }

    async fn advance(&self, by: Duration) {
        let ageing = ageing(&self.sound.inner.prefix, by);
        let connected = PgConnection::connect(&self.url).await;
        let mut side = connected.expect("the server answers");
        let aged = side.execute(sqlx::raw_sql(AssertSqlSafe(ageing))).await;
        aged.expect("the records age");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn l07_no_condition_of_a_statement_goes_missing_unnoticed() {
    each_is_noticed(MUTATIONS, Mutant::new).await;
}
