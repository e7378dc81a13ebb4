//! The golden files of Postgres.

use std::time::Duration;

use expect_test::expect_file;
use sqlx::{PgPool, Postgres};

use super::super::{
    PostgresStore,
    listen::TELL,
    lists, migrate,
    rows::{Protocol, written_out},
    statements::{Statement, Statements},
    together::{LOOKED, WRITTEN},
};
use crate::{
    identity::RecordId,
    store::{
        TransactionStore,
        notifications::HELLO,
        sql::{
            self, Value, bytes,
            migrate::Schema as _,
            server::ServerDialect as _,
            tests::golden::{
                Golden, claim, completion, heartbeat, here_is, id, of_schema, prefix, version,
            },
        },
    },
};

/// Each statement, with the name by which its answer is known.
fn each(of: &Statements) -> Golden {
    let mut golden = Golden::default();
    let begin_step = of.begin_step();
    let Statements {
        protocol,
        load,
        again,
        create,
        replace,
        replace_all,
        load_all,
        complete,
        many,
        mark,
        purge,
        scan,
        load_steps,
        list_steps,
        write_step,
        channel,
        here,
    } = of;
    let statements: [(&str, &Statement); 18] = [
        ("load", load),
        ("again", again),
        ("create", create),
        ("replace", replace),
        ("replace_all", replace_all),
        ("load_all", load_all),
        ("complete", complete),
        ("many, claim", &many.claim),
        ("many, again", &many.again),
        ("many, complete", &many.complete),
        ("many, look", &many.look),
        ("mark", mark),
        ("purge", purge),
        ("scan", scan),
        ("load_steps", load_steps),
        ("list_steps", list_steps),
        ("write_step", write_step),
        ("begin_step", &begin_step),
    ];
    golden.add("protocol", &format!("{protocol:?}"));
    for (name, statement) in statements {
        golden.add(&format!("{name}, {}", statement.name), &statement.text);
    }
    golden.add("channel", channel);
    golden.add("here", here.as_deref().unwrap_or("none"));
    golden
}

#[test]
fn golden_statements_of_every_protocol_are_the_same_bytes() {
    let extended = Statements::new(&prefix(), Protocol::Extended);
    each(&extended).is(expect_file!["golden/statements.sql"]);
    let simple = Statements::new(&prefix(), Protocol::Simple);
    each(&simple).is(expect_file!["golden/statements_simple.sql"]);
    each(&extended.inside(Some(&here_is()))).is(expect_file!["golden/statements_inside.sql"]);
    each(&simple.inside(None)).is(expect_file!["golden/statements_inside_unknown.sql"]);
}

#[test]
fn golden_values_are_written_out_as_the_same_bytes() {
    let of = Statements::new(&prefix(), Protocol::Simple);
    let channel = || [Value::Text(Some(&*of.channel))];
    let id = id(1);
    let (claim, heartbeat, completion) = (claim(1), heartbeat(1), completion(1));
    let mut golden = Golden::default();
    golden.add("load", &written_out(&of.load.text, &[bytes(id.as_bytes())]));
    let [values @ .., _] = sql::written(&id, None, &claim);
    golden.add("create", &written_out(&of.create.text, &values));
    let values = sql::written(&id, Some(version(1)), &heartbeat);
    let values: Vec<_> = values.into_iter().chain(channel()).collect();
    golden.add("replace", &written_out(&of.replace.text, &values));
    let values = sql::completed(&id, version(1), &completion);
    let values: Vec<_> = values.into_iter().chain(channel()).collect();
    golden.add("complete", &written_out(&of.complete.text, &values));
    golden.is(expect_file!["golden/written_out.sql"]);
}

#[test]
fn golden_lists_of_records_are_written_out_as_the_same_bytes() {
    let of = Statements::new(&prefix(), Protocol::Simple);
    let mut golden = Golden::default();
    for count in [1, 2, 8] {
        let records: Vec<_> = (1..=count).map(|it| (id(it), heartbeat(it))).collect();
        let seen = |id: &RecordId| Some(version(id.as_bytes()[0]));
        let rows = records
            .iter()
            .map(|(id, next)| sql::written(id, seen(id), next));
        let rows: Vec<_> = rows.collect();
        let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
        let text = &of.replace_all.text;
        let told = lists::written_out(text, &WRITTEN, &rows, Some(&of.channel));
        golden.add(&format!("replace_all, {count} records"), &told);
        let untold = lists::written_out(text, &WRITTEN, &rows, None);
        golden.add(&format!("replace_all, {count} records, untold"), &untold);
        let rows: Vec<_> = records
            .iter()
            .map(|(id, _)| [bytes(id.as_bytes())])
            .collect();
        let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
        let text = lists::written_out(&of.load_all.text, &LOOKED, &rows, None);
        golden.add(&format!("load_all, {count} records"), &text);
    }
    golden.is(expect_file!["golden/together.sql"]);
}

#[test]
fn golden_migrations_are_the_same_bytes() {
    let prefix = prefix();
    let mut golden = Golden::default();
    golden.add("begin", migrate::BEGIN);
    golden.add("lock", &migrate::lock(&prefix));
    let table = |name| Postgres::stands(&format!("{prefix}{name}"));
    golden.add("the look for the table of the versions", &table("schema"));
    golden.add("the look for the table of the records", &table("records"));
    of_schema::<Postgres>(&mut golden, "");
    golden.is(expect_file!["golden/migrations.sql"]);
}

#[tokio::test]
async fn golden_sessions_are_set_up_by_the_same_bytes() {
    let mut golden = Golden::default();
    let pool = || PgPool::connect_lazy("postgres://app@localhost/shop").expect("a URL");
    let builder = || PostgresStore::builder().table_prefix("golden_");
    for (name, builder) in [
        ("a session", builder()),
        (
            "a session of two minutes",
            builder().answer_timeout(Duration::from_secs(120)),
        ),
        ("a session behind a proxy", builder().transaction_pooling()),
    ] {
        let store = builder.pool(pool()).expect("options");
        golden.add(name, &store.inner.connections.server().question());
    }
    let store = builder().pool(pool()).expect("options");
    let query = store.version_query(&id(1)).expect("it has one");
    golden.add("the look for a version", &query);
    golden.add("the channel of LISTEN", &store.inner.statements.channel);
    golden.add("hello", &format!("{TELL}\n{HELLO}"));
    golden.is(expect_file!["golden/sessions.sql"]);
}
