//! The golden files of MariaDB and MySQL.

use std::time::Duration;

use expect_test::expect_file;
use sqlx::{Execute as _, MySql, MySqlPool};

use super::super::{
    MySqlStore,
    beside_triggers::{beside_triggers, kept},
    connection, migrate,
    rows::query_elsewhere,
    statements::{Statement, Statements},
    together::Known,
};
use crate::{
    record::{Draft, Holder, Record, Time},
    store::{
        Stamp, Swap, TransactionStore,
        lane::{Job, Work},
        moment::Moment,
        sql::{
            self,
            migrate::Schema as _,
            server::ServerDialect as _,
            tests::golden::{
                Golden, claim, completion, heartbeat, here_is, id, of_schema, prefix, version,
            },
        },
        together::Write,
        version_cache::VersionCache,
    },
};

/// Each statement, with the places of its values.
fn each(of: &Statements) -> Golden {
    let mut golden = Golden::default();
    let Statements {
        load,
        load_locked,
        load_shared,
        again,
        create,
        create_and_show,
        replace,
        complete,
        replace_and_show,
        expired,
        scan,
        load_steps,
        list_steps,
        write_step,
        write_step_and_show,
        begin_step,
        table,
        steps,
        triggers: _,
    } = of;
    let statements: [(&str, &Statement); 16] = [
        ("load", load),
        ("load_locked", load_locked),
        ("load_shared", load_shared),
        ("again", again),
        ("create", create),
        ("create_and_show", create_and_show),
        ("replace", replace),
        ("complete", complete),
        ("replace_and_show", replace_and_show),
        ("expired", expired),
        ("scan", scan),
        ("load_steps", load_steps),
        ("list_steps", list_steps),
        ("write_step", write_step),
        ("write_step_and_show", write_step_and_show),
        ("begin_step", begin_step),
    ];
    for (name, statement) in statements {
        let name = format!("{name}, {:?}", statement.places);
        golden.add(&name, &statement.text);
    }
    golden.add("table", table);
    golden.add("steps", steps);
    golden
}

#[test]
fn golden_statements_outside_and_inside_a_transaction_are_the_same_bytes() {
    let of = Statements::new(&prefix());
    each(&of).is(expect_file!["golden/statements.sql"]);
    each(&of.inside(Some(&here_is()))).is(expect_file!["golden/statements_inside.sql"]);
}

#[test]
fn golden_writes_beside_triggers_are_the_same_bytes() {
    let of = Statements::new(&prefix());
    let (id, next) = (id(1), completion(2));
    let mut golden = Golden::default();
    let values = sql::written(&id, None, &next);
    golden.add("create", &beside_triggers(&of.create, &values));
    let values = sql::completed(&id, version(1), &next);
    golden.add("complete", &beside_triggers(&of.complete, &values));
    golden.add("three", &kept(3));
    golden.is(expect_file!["golden/beside_triggers.sql"]);
}

#[test]
fn golden_empty_values_are_written_out_as_the_same_bytes() {
    let of = Statements::new(&prefix());
    let next = Draft {
        holder: Holder {
            label: "".into(),
            trace_parent: None,
        },
        ..claim(1)
    };
    let mut golden = Golden::default();
    for (name, statement, seen) in [
        ("create", &of.create, None),
        ("replace", &of.replace, Some(version(1))),
    ] {
        let id = id(1);
        let values = sql::written(&id, seen, &next);
        let query = query_elsewhere(statement, &values);
        golden.add(name, query.sql().as_str());
    }
    golden.is(expect_file!["golden/written_out.sql"]);
}

/// The record of a claim.
fn record(number: u8) -> Record {
    claim(number).apply(None, Time::from_micros(0))
}

/// Writes of heartbeats, each eighth of which is a completion of a record that is known.
fn writes(count: u8) -> Vec<Write> {
    let write = |number| Write {
        id: id(number),
        seen: version(number),
        next: match number % 8 {
            0 => completion(number),
            _ => heartbeat(number),
        },
    };
    (1..=count).map(write).collect()
}

#[test]
fn golden_messages_of_many_records_are_the_same_bytes() {
    let of = Statements::new(&prefix());
    let mut golden = Golden::default();
    for count in [1, 2, 8] {
        let writes = writes(count);
        for (name, shows, knows) in [
            ("MariaDB", true, false),
            ("MariaDB, known", true, true),
            ("MySQL, known", false, true),
        ] {
            let known = writes.iter().map(|write| Known {
                write,
                previous: knows.then(|| record(write.id.as_bytes()[0])),
                is_locked: false,
            });
            let known: Vec<_> = known.collect();
            let (text, sent) = of.message(u64::MAX, shows, &known);
            golden.add(&format!("{name}, {sent} records"), &text);
        }
        let ids: Vec<_> = writes.iter().map(|write| write.id).collect();
        golden.add(
            &format!("load_all, {count} records"),
            &of.load_all_text(&ids),
        );
        golden.add(
            &format!("find_free, {count} records"),
            &of.find_free_text(&ids),
        );
        golden.add(&format!("the purge of {count} records"), &of.delete(&ids));
    }
    golden.is(expect_file!["golden/together.sql"]);
}

/// Operations of each kind that may share a message. Those of a call go by what a process knows.
fn jobs(count: u8) -> [Vec<Job>; 4] {
    let known = |number| {
        let (versions, id, record) = (VersionCache::default(), id(number), record(number));
        let stamp = Stamp::from_record(&record, Time::from_micros(0));
        let swap = Swap::Applied(stamp);
        versions.record_write(&id, None, &claim(number), &swap, Moment::now());
        versions
            .version(&id, Some(version(number)))
            .expect("it is known")
    };
    let job = |number, work| Job {
        id: id(number),
        work,
    };
    let look = |number| job(number, Work::Look);
    let claims = |number| {
        let next = claim(number);
        job(number, Work::Claim { next, known: None })
    };
    let again = |number| {
        let (next, known) = (claim(number), Some(known(number)));
        job(number, Work::Claim { next, known })
    };
    let complete = |number| {
        let (seen, next) = (version(number), completion(number));
        let known = known(number);
        job(number, Work::Complete { seen, next, known })
    };
    [
        (1..=count).map(look).collect(),
        (1..=count).map(claims).collect(),
        (1..=count).map(again).collect(),
        (1..=count).map(complete).collect(),
    ]
}

#[test]
fn golden_messages_of_many_callers_are_the_same_bytes() {
    let of = Statements::new(&prefix());
    let mut golden = Golden::default();
    for count in [1, 2] {
        let jobs = jobs(count);
        let [looks, claims, again, complete] =
            jobs.each_ref().map(|jobs| jobs.iter().collect::<Vec<_>>());
        golden.add(&format!("looks, {count}"), &of.look_text(&looks));
        let claims = of.claim_text(u64::MAX, &claims);
        golden.add(&format!("claims, {count}"), &claims.expect("they fit"));
        golden.add(&format!("known outcomes, {count}"), &of.again_text(&again));
        let complete = of.complete_text(u64::MAX, &complete);
        golden.add(
            &format!("completions, {count}"),
            &complete.expect("they fit"),
        );
    }
    golden.is(expect_file!["golden/many.sql"]);
}

#[test]
fn callers_that_look_at_one_record_share_a_row() {
    let of = Statements::new(&prefix());
    let [looks, _, again, _] = jobs(1);
    let (look, again) = (&looks[0], &again[0]);

    assert_eq!(of.look_text(&[look, look]), of.look_text(&[look]));
    assert_eq!(of.again_text(&[again, again]), of.again_text(&[again]));
}

#[test]
fn golden_migrations_are_the_same_bytes() {
    let prefix = prefix();
    let mut golden = Golden::default();
    golden.add("lock", &migrate::lock(&prefix));
    golden.add("release", &migrate::release(&prefix));
    golden.add(
        "the look for the table of the records",
        &MySql::stands("golden_records"),
    );
    // A step and its note are two messages here.
    of_schema::<MySql>(&mut golden, "-- message\n");
    golden.is(expect_file!["golden/migrations.sql"]);
}

#[tokio::test]
async fn golden_sessions_are_set_up_by_the_same_bytes() {
    let mut golden = Golden::default();
    let settings = |seconds| connection::settings(Duration::from_secs(seconds), &prefix());
    golden.add("a session", &settings(15));
    golden.add("a session that waits for a day", &settings(24 * 60 * 60));
    golden.add("a session of a relay", connection::SESSION);
    golden.add("the look for a transaction", connection::POINT);
    let pool = MySqlPool::connect_lazy("mysql://app@localhost/shop").expect("a URL");
    let store = MySqlStore::builder().table_prefix("golden_").pool(pool);
    let query = store.expect("options").version_query(&id(1));
    golden.add("the look for a version", &query.expect("it has one"));
    golden.is(expect_file!["golden/sessions.sql"]);
}
