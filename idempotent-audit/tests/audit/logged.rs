//! A server with a binary log lets only a user with a certain right make triggers.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use idempotent_audit::{Audit, AuditError};
use idempotent_runtime::{Error, Idempotency, store::MySqlStore};
use sqlx::{Connection as _, MySqlConnection, MySqlPool};

use crate::made::program;

/// A server in a folder, which ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _it_may_have_ended = self.0.kill();
        let _it_may_have_ended = self.0.wait();
    }
}

fn started(folder: &Path) -> Server {
    let data = format!("--datadir={}/data", folder.display());
    let mut install = Command::new(program("mariadb-install-db"));
    let install = install.args([
        "--no-defaults",
        &data,
        "--auth-root-authentication-method=normal",
    ]);
    let installed = install.stdout(Stdio::null()).status().expect("it starts");
    assert!(installed.success());
    let mut serve = Command::new(program("mariadbd"));
    serve.args(["--no-defaults", &data, "--skip-networking", "--server-id=1"]);
    serve.args(["--user=root", "--log-bin", "--innodb-log-file-size=4M"]);
    serve.arg(format!("--socket={}/socket", folder.display()));
    let serve = serve.stdout(Stdio::null()).stderr(Stdio::null());
    Server(serve.spawn().expect("it starts"))
}

async fn connected(url: &str) -> MySqlConnection {
    loop {
        match MySqlConnection::connect(url).await {
            Ok(connection) => return connection,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_user_without_the_right_learns_both_ways_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let _server = started(folder.path());
    let socket = folder.path().join("socket");
    let url = |user: &str, database: &str| {
        format!(
            "mysql://{user}@localhost/{database}?socket={}",
            socket.display()
        )
    };
    let mut root = connected(&url("root", "mysql")).await;
    let made =
        "CREATE DATABASE shop; CREATE USER app@localhost; GRANT ALL ON shop.* TO app@localhost";
    sqlx::raw_sql(made)
        .execute(&mut root)
        .await
        .expect("a user");

    let pool = MySqlPool::connect(&url("app", "shop"))
        .await
        .expect("it answers");
    let store = MySqlStore::builder().pool(pool.clone()).expect("a store");
    store.migrate().await.expect("its tables");
    let refused = Audit::mysql(pool.clone()).migrate().await;
    let refused = refused.expect_err("it may make no trigger");
    assert!(
        matches!(refused, AuditError::NeedsSuper { .. }),
        "{refused:?}"
    );
    let said = refused.to_string();
    assert!(
        said.contains("SUPER") && said.contains("log_bin_trust_function_creators"),
        "{said}"
    );

    let trusted = "SET GLOBAL log_bin_trust_function_creators = 1";
    sqlx::raw_sql(trusted)
        .execute(&mut root)
        .await
        .expect("a setting");
    Audit::mysql(pool.clone())
        .migrate()
        .await
        .expect("it is made");
    let audit = Audit::mysql(pool).connect().await.expect("it stands");
    let idem = Idempotency::builder(store)
        .audit(audit.clone())
        .build()
        .expect("a handle");
    let call = idem.call("payments.charge").key("k");
    let paid = call.run(async |_| Ok::<_, Error>(7_u64)).await;
    assert_eq!(paid.expect("a call"), 7);
    assert_eq!(audit.seal().await, Ok(3), "start and two writes");
    let report = audit.verify().run().await.expect("it can be read");
    assert_eq!((report.entries, report.divergence), (3, None));
}
