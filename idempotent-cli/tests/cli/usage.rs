//! Arguments, passwords, files that are not there, completions and the page of the manual.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    thread,
};

use expect_test::expect;

use crate::shop::{Ran, Shop, prefix, program, server};

fn run(arguments: &[&str]) -> Ran {
    Ran::of(program().args(arguments).output().expect("it runs"))
}

#[test]
fn the_help_has_the_commands_and_the_exit_codes() {
    expect![[r#"
        Looks at the records of calls, and settles what no call can decide

        Usage: idempotent [OPTIONS] <COMMAND>

        Commands:
          list  Lists records. `--attention` lists those that no call can decide
          show  Shows one record, with its outcome
          explain  Tells the story of one record, and what can be done
          steps  Lists the steps of one call
          settle  Says how a call ended that no call can decide
          resume  Has a parked record tried again by the next call
          undo  Has the next call undo the steps of a call, which then failed with this error
          invalidate  Gives up the outcome of a finished call: the next call runs once more
          purge  Deletes records that have expired
          doctor  Looks the store over, and says for each finding what to do
          migrate  Makes the tables of the store, or brings them up to date
          ddl  Prints the statements that make the tables
          sequence  Looks at streams of numbered calls, and settles the number at which one stops
          outbox  Looks at an outbox, and has it go on
          audit  Verifies the audit of the records, exports and prunes it, and has people approve
          completions  Prints the completions for a shell
          man  Prints the page of the manual, for `man`
          help  Print this message or the help of the given subcommand(s)

        Options:
          --store <URL>  The URL of the store: `sqlite:file.db`, `postgres://…`, `mysql://…`,
          `redis://…`, or `redis+cluster://host:port,host:port`. `@file` reads
          it from a file, where a password may stand [env: IDEMPOTENT_STORE]
          --prefix <TEXT>  How the names of its tables, or its keys in Redis, begin
          --audit-retention <AGE>  How long the application keeps what has expired, as its
          `audit_retention` says
          --json  Writes JSON, one object a line
          -h, --help  Print help
          -V, --version  Print version

        Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing found, 4 refused, or the record has moved.
        exit code 0
    "#]].assert_eq(&run(&["--help"]).all());
}

#[test]
fn a_password_stands_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("url");
    for url in [
        "postgres://app:very-secret@127.0.0.1:1/shop",
        "mysql://app:very-secret@127.0.0.1:1/shop",
        "redis://app:very-secret@127.0.0.1:1/0",
        "redis+cluster://app:very-secret@127.0.0.1:1,127.0.0.1:2",
        "nonsense://app:very-secret@127.0.0.1:1/shop",
        "postgres://app:very-secret@127.0.0.1:1/shop?sslmode=nonsense",
        "postgres://127.0.0.1:1/shop?user=app&password=very-secret",
        "mysql://127.0.0.1:1/shop?password=very-secret",
    ] {
        fs::write(&file, url).expect("it is written");
        let by_file = format!("@{}", file.display());
        for command in [
            &["list"][..],
            &["migrate"],
            &["show", "0123456789"],
            &["purge"],
        ] {
            let refused = run(&[command, &["--store", url]].concat());
            assert_eq!(refused.code, 2, "{}", refused.all());
            let by_file = run(&[command, &["--store", &by_file]].concat());
            let by_environment = program()
                .env("IDEMPOTENT_STORE", url)
                .args(command)
                .output();
            let by_environment = Ran::of(by_environment.expect("it runs"));
            for ran in [refused, by_file, by_environment] {
                assert!(
                    ran.code != 0 && !ran.all().contains("secret"),
                    "{}",
                    ran.all()
                );
            }
        }
    }
    let help = program()
        .env("IDEMPOTENT_STORE", "postgres://a:secret@b/c")
        .arg("--help")
        .output();
    assert!(!Ran::of(help.expect("it runs")).all().contains("secret"));
}

#[test]
fn a_file_that_is_missing_is_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("typo.db");
    let listed = run(&["list", "--store", &file.display().to_string()]);
    assert_eq!(listed.code, 3, "{}", listed.all());
    assert!(!file.exists());
    let migrated = run(&["migrate", "--store", &file.display().to_string()]);
    assert_eq!(migrated.code, 0, "{}", migrated.all());
    assert!(file.exists());
}

#[test]
fn a_database_without_tables_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("empty.db");
    fs::write(&file, "").expect("it is written");
    let listed = run(&["list", "--store", &file.display().to_string()]);
    assert_eq!(listed.code, 1, "{}", listed.all());
    assert!(listed.err.contains("migrate"), "{}", listed.all());
}

#[test]
fn completions_and_the_manual_are_made() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let made = run(&["completions", shell]);
        assert!(
            made.code == 0 && made.out.contains("idempotent"),
            "{}",
            made.err
        );
    }
    let page = run(&["man"]);
    assert!(
        page.code == 0 && page.out.contains(".TH idempotent 1"),
        "{}",
        page.out
    );
    let folder = tempfile::tempdir().expect("a folder");
    let pages = run(&["man", "--to", &folder.path().display().to_string()]);
    assert_eq!(pages.code, 0, "{}", pages.all());
    for page in [
        "idempotent.1",
        "idempotent-settle.1",
        "idempotent-outbox-resend.1",
    ] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}

#[tokio::test]
async fn a_list_that_nobody_reads_to_its_end_is_no_failure() {
    let shop = Shop::sqlite().await;
    for number in 0..40 {
        shop.charged(&format!("order-{number}")).await;
    }
    let mut list = program();
    list.env("IDEMPOTENT_STORE", shop.url())
        .args(["list", "--json"]);
    list.stdout(std::process::Stdio::piped());
    let mut list = list.spawn().expect("it runs");
    drop(list.stdout.take());
    assert!(list.wait().expect("it ends").success());
}

/// The names of the commands that the help has.
fn commands() -> Vec<String> {
    let help = run(&["--help"]).out;
    let (_, commands) = help.split_once("Commands:\n").expect("commands");
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    lines.filter_map(name).filter(|it| it != "help").collect()
}

#[test]
fn the_page_has_every_command_and_every_flag_of_a_list() {
    let page = include_str!("../../README.md");
    let commands = commands();
    assert!(commands.len() >= 12, "{commands:?}");
    for command in &commands {
        let named = [format!("`{command}`"), format!("`{command} ")];
        assert!(named.iter().any(|it| page.contains(it)), "{command}");
    }
    for line in page
        .lines()
        .filter_map(|line| line.strip_prefix("$ idempotent "))
    {
        let command = line.split(' ').next().expect("a command");
        assert!(commands.iter().any(|it| it == command), "{line}");
    }
    let help = run(&["list", "--help"]).out;
    for flag in [
        "--attention",
        "--abandoned",
        "--operation",
        "--scope",
        "--key",
        "--state",
        "--older-than",
        "--limit",
    ] {
        assert!(help.contains(flag) && page.contains(flag), "{flag}");
    }
}

/// Servers that let nobody in without encryption, whose certificates are of an authority of the
/// tests.
#[test]
#[ignore = "needs servers: cargo xtask test"]
fn a_url_switches_encryption_on() {
    for name in [
        "IDEMPOTENT_TEST_POSTGRES_TLS_URL",
        "IDEMPOTENT_TEST_MARIADB_TLS_URL",
    ] {
        let (url, prefix) = (server(name), prefix());
        for (command, code) in [("migrate", 0), ("list", 3), ("doctor", 0)] {
            let ran = run(&[command, "--store", &url, "--prefix", &prefix]);
            assert_eq!(ran.code, code, "{command} at {name}: {}", ran.all());
        }
    }
}

#[tokio::test]
async fn a_change_that_cannot_be_shown_is_not_made() {
    let shop = Shop::sqlite().await;
    let id = shop.uncertain("order-1").await.to_hex();
    let mut settle = program();
    settle.env("IDEMPOTENT_STORE", shop.url());
    settle.args(["settle", &id, "--done", "--reason", "r", "--yes"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = settle.stdout(writer).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        shop.run(&["list", "--attention"]).code,
        0,
        "it is still uncertain"
    );
}

#[test]
fn a_url_that_names_nothing_makes_nothing() {
    for url in ["", "sqlite:", "sqlite::memory:", "sqlite:x.db?mode=memory"] {
        let made = program()
            .env("IDEMPOTENT_STORE", url)
            .arg("migrate")
            .output();
        let made = Ran::of(made.expect("it runs"));
        assert_eq!(made.code, 2, "{url}: {}", made.all());
    }
}

#[tokio::test]
async fn texts_of_others_move_no_terminal() {
    let shop = Shop::sqlite().await;
    let id = shop.uncertain("order-1").await.to_hex();
    let pool = sqlx::SqlitePool::connect(shop.url()).await.expect("a file");
    let evil = "UPDATE idempotent_records SET holder = char(27) || '[2J' || char(155) || char(8238), \
                operation = 'a' || char(27) || ']0;x' || char(7)";
    sqlx::query(evil)
        .execute(&pool)
        .await
        .expect("it is written");
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["explain", &id],
        &["explain", &id, "--json"],
        &["invalidate", &id, "--reason", "r", "--yes"],
        &["settle", &id, "--value", "1", "--reason", "r", "--yes"],
    ] {
        let (out, err) = shop.raw(arguments);
        let moves = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
        assert!(
            !out.contains(moves) && !err.contains(moves),
            "{arguments:?}: {out}{err}"
        );
    }
}

/// A server that says the password again, and moves the terminal, in its refusal.
fn echoing_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _startup = stream.read(&mut [0; 1_024]);
            let fields = b"SFATAL\0VFATAL\0C28P01\0Mvery-secret is wrong \x1b[2J\0\0";
            let length = u32::try_from(fields.len() + 4).expect("it is short");
            let refusal = [b"E", &length.to_be_bytes()[..], fields].concat();
            let _the_client_may_be_gone = stream.write_all(&refusal);
        }
    });
    address
}

#[test]
fn a_server_that_says_the_password_again_is_not_shown() {
    let url = format!(
        "postgres://app:very-secret@{}/shop?sslmode=disable",
        echoing_server()
    );
    for command in [
        &["list"][..],
        &["doctor"],
        &["doctor", "--json"],
        &["outbox", "topics"],
    ] {
        let output = program()
            .env("IDEMPOTENT_STORE", &url)
            .args(command)
            .output();
        let ran = Ran::of(output.expect("it runs"));
        assert_eq!(ran.code, 1, "{}", ran.all());
        assert!(ran.all().contains("*** is wrong"), "{}", ran.all());
        assert!(!ran.all().contains('\u{1b}'), "{command:?}");
    }
}
