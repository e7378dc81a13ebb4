//! Takes the conditions and the fields out of the statements, one at a time: a case of the suite for stores must tell.
//!
//! Left out is what decides how fast a statement is and not what it does, as the bound on `purge_from` beside the one on `expires`;
//! what is known beside a version; and what counts only where somebody else holds a lock, which the tests of locks tell.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Connection, Executor, mysql::MySqlConnection};

use super::{
    Inner, MySqlStore, Statements,
    statements::{NOW, Statement},
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
    ReplaceAndShow,
    Complete,
    Expired,
    Scan,
}

use Of::{Again, Complete, Create, Expired, Load, Replace, ReplaceAndShow, Scan};

const MUTATIONS: &[Mutation<Of>] = &[
    Mutation(
        Load,
        "ON id = ?1",
        "ON ?1 IS NOT NULL",
        "nothing_stands_under_a_new_id",
    ),
    Mutation(Load, "LEFT JOIN", "JOIN", "nothing_stands_under_a_new_id"),
    Mutation(
        Load,
        "UTC_TIMESTAMP(6)",
        "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Again,
        "version = ?2",
        "?2 IS NOT NULL",
        "a_claim_of_what_is_done_is_shown_what_stands",
    ),
    Mutation(
        Again,
        "NOW",
        "0",
        "a_claim_of_what_is_done_is_shown_what_stands",
    ),
    Mutation(
        Again,
        "NOW",
        "expires",
        "a_claim_of_what_is_done_is_shown_what_stands",
    ),
    Mutation(
        Create,
        "GREATEST(?9, NOW)",
        "NOW + 0 * ?9",
        "a_token_follows_a_floor_above_the_clock",
    ),
    Mutation(
        Create,
        "GREATEST(?9, NOW)",
        "?9",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Create,
        "COALESCE(LEAST(?15, MAX - NOW), 0)",
        "COALESCE(?15, 0)",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Create,
        "LAST_INSERT_ID(NOW)",
        "1 + LAST_INSERT_ID(NOW)",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Create,
        "IF(?8 = 1, NULL, NOW)",
        "NULL + ?8",
        "a_record_begins_in_any_state",
    ),
    Mutation(
        Create,
        "IF(?8 = 1, NULL, NOW)",
        "NOW + 0 * ?8",
        "a_claim_stands_as_written",
    ),
    Mutation(
        Create,
        "COALESCE(LEAST(?16, MAX - NOW), 0), ?17",
        "COALESCE(?16, 0), ?17",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Create,
        "NOW + GREATEST(0,",
        "MAX - 0 * GREATEST(0,",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Create,
        "LAST_INSERT_ID(0 *",
        "LAST_INSERT_ID(7 + 0 *",
        "of_many_claims_at_once_one_wins",
    ),
    Mutation(
        Replace,
        "WHERE id = ?1 AND version",
        "WHERE ?1 IS NOT NULL AND version",
        "ids_and_versions_are_compared_whole",
    ),
    Mutation(
        Replace,
        "version = ?20",
        "?20 IS NOT NULL",
        "of_many_takeovers_at_once_one_wins",
    ),
    Mutation(
        Replace,
        "COALESCE(?3, operation)",
        "operation",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "COALESCE(?4, scope)",
        "scope",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "COALESCE(?5, call_key)",
        "call_key",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "COALESCE(?6, fingerprint)",
        "fingerprint",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "COALESCE(?7, digests)",
        "digests",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "state = ?8,",
        "state = state,",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "GREATEST(?9, NOW)",
        "NOW + 0 * ?9",
        "a_token_follows_a_floor_above_the_clock",
    ),
    Mutation(
        Replace,
        "GREATEST(?9, NOW)",
        "?9",
        "tokens_grow_over_takeovers",
    ),
    Mutation(
        Replace,
        "NOW), token)",
        "NOW), token + 1)",
        "a_lease_ends_by_the_clock_of_the_store",
    ),
    Mutation(
        Replace,
        "attempt = ?10",
        "attempt = attempt",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "attempt_id = ?11",
        "attempt_id = attempt_id",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "holder = ?12",
        "holder = holder",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "trace_parent = ?13",
        "trace_parent = trace_parent",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "on_crash = ?14",
        "on_crash = on_crash",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "- NOW), lease_end)",
        "- NOW), NOW)",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "NOW + LEAST(?15, MAX - NOW), lease_end",
        "NOW + ?15, lease_end",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Replace,
        "IF(?3 IS NULL, created, NOW)",
        "created",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "IF(?3 IS NULL, created, NOW)",
        "NOW",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "IF(?8 = 1, NULL, NOW)",
        "NOW",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "IF(?8 = 1, NULL, NOW)",
        "COALESCE(finished, NOW)",
        "a_claim_over_a_record_replaces_its_subject",
    ),
    Mutation(
        Replace,
        "- NOW), expires)",
        "- NOW), NOW)",
        "what_a_draft_keeps_stays",
    ),
    Mutation(
        Replace,
        "NOW + LEAST(?16, MAX - NOW), expires",
        "NOW + ?16, expires",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Replace,
        "outcome_kind = ?17",
        "outcome_kind = COALESCE(?17, outcome_kind)",
        "a_claim_where_an_expired_record_stands_is_refused",
    ),
    Mutation(
        Replace,
        "outcome_schema = ?18",
        "outcome_schema = outcome_schema",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "outcome = ?19",
        "outcome = outcome",
        "every_field_comes_back",
    ),
    Mutation(
        Replace,
        "AND purge_from < MAX",
        "",
        "purge_deletes_what_was_resumed_and_left",
    ),
    Mutation(
        Replace,
        "WHEN ?15 IS NULL THEN LEAST(purge_from, NOW + LEAST(?16, MAX - NOW))",
        "WHEN ?15 IS NULL THEN purge_from",
        "a_purge_says_how_long_is_kept",
    ),
    Mutation(
        Replace,
        "LAST_INSERT_ID(NOW + 0 * state)",
        "LAST_INSERT_ID(NOW + 1000 + 0 * state)",
        "a_lease_ends_by_the_clock_of_the_store",
    ),
    Mutation(
        ReplaceAndShow,
        "WHERE id = ?1 AND version",
        "WHERE ?1 IS NOT NULL AND version",
        "ids_and_versions_are_compared_whole",
    ),
    Mutation(
        ReplaceAndShow,
        "version = ?20",
        "?20 IS NOT NULL",
        "a_swap_over_another_version_is_refused",
    ),
    Mutation(
        ReplaceAndShow,
        "RETURNING NOW",
        "RETURNING NOW + 1",
        "a_client_that_has_seen_nothing_is_told_what_it_wrote",
    ),
    Mutation(
        ReplaceAndShow,
        "outcome = ?19",
        "outcome = NULL",
        "a_client_that_has_seen_nothing_is_told_what_it_wrote",
    ),
    Mutation(
        Complete,
        "AND version = ?3",
        "AND ?3 IS NOT NULL",
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
        "finished = LAST",
        "finished = 5 + LAST",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Complete,
        "expires = NOW",
        "expires = created",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Complete,
        "expires = NOW + LEAST(?4, MAX - NOW)",
        "expires = NOW + ?4",
        "a_moment_beyond_all_time_is_the_last_one",
    ),
    Mutation(
        Complete,
        "outcome_kind = ?5",
        "outcome_kind = 1 + 0 * ?5",
        "any_outcome_comes_back",
    ),
    Mutation(
        Complete,
        "outcome_schema = ?6",
        "outcome_schema = 0 * ?6",
        "a_completion_keeps_the_subject",
    ),
    Mutation(
        Complete,
        "outcome = ?7",
        "outcome = outcome",
        "any_outcome_comes_back",
    ),
    Mutation(
        Complete,
        "purge_from = LEAST(purge_from, NOW + LEAST(?4, MAX - NOW))",
        "purge_from = purge_from",
        "what_is_kept_stays_until_then",
    ),
    Mutation(
        Expired,
        "AND expires <= NOW - ?2",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Expired,
        "expires <= NOW - ?2",
        "expires <= NOW",
        "purge_counts_what_is_kept_from_its_expiry",
    ),
    Mutation(
        Expired,
        "state IN (2, 3)",
        "TRUE",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Expired,
        "state IN (2, 3)",
        "state = 2",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Expired,
        "state IN (2, 3)",
        "state = 3",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Expired,
        "AND on_crash = 1",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Expired,
        "AND lease_end <= NOW",
        "",
        "purge_deletes_only_what_is_expired",
    ),
    Mutation(
        Expired,
        "LIMIT ?1",
        "LIMIT 1000",
        "purge_goes_in_bounded_batches",
    ),
    Mutation(Scan, "id > ?1", "id >= ?1", "scan_goes_in_pages"),
    Mutation(
        Scan,
        "ORDER BY id",
        "ORDER BY id DESC",
        "scan_lists_in_the_order_of_ids",
    ),
];

/// Clients of one table whose statements are these.
struct Mutant {
    sound: MySqlStore,
    statements: Arc<Statements>,
    url: String,
}

impl Mutant {
    async fn new(mutation: Option<Mutation<Of>>) -> Self {
        let url = std::env::var("IDEMPOTENT_TEST_MARIADB_URL");
        let url = url.expect("`cargo xtask test` says where MariaDB is");
        let prefix = upgrade::prefix();
        let builder = MySqlStore::builder().table_prefix(&prefix.to_string());
        let sound = builder.connect(&url).await.expect("the server answers");
        let mut statements = Statements::new(&prefix);
        if let Some(mutation) = mutation {
            let statement = match mutation.0 {
                Load => &mut statements.load,
                Again => &mut statements.again,
                Create => &mut statements.create,
                Replace => &mut statements.replace,
                ReplaceAndShow => &mut statements.replace_and_show,
                Complete => &mut statements.complete,
                Expired => &mut statements.expired,
                Scan => &mut statements.scan,
            };
            let max = i64::MAX.to_string();
            let words = [("NOW", NOW), ("MAX", &max)];
            *statement = Statement::new(&mutation.mutated(&numbered(statement), &words));
        }
        Self {
            sound,
            statements: Arc::new(statements),
            url,
        }
    }
}

/// The text of a statement before the numbers were taken out of it.
fn numbered(statement: &Statement) -> String {
    let mut parts = statement.text.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (part, place) in parts.zip(&statement.places) {
        write!(text, "?{}{part}", place + 1).expect("a text takes everything");
    }
    text
}

#[async_trait]
impl Subject for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        let sound = &self.sound.inner;
        Arc::new(MySqlStore {
            inner: Arc::new(Inner {
                connections: sound.connections.another(10),
                statements: Arc::clone(&self.statements),
                prefix: sound.prefix.clone(),
                waiters: Arc::default(),
                recent: Arc::default(),
            }),
        })
    }

    async fn advance(&self, by: Duration) {
        let ageing = ageing(&self.sound.inner.prefix, by);
        let connected = MySqlConnection::connect(&self.url).await;
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
