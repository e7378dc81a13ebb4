//! The golden file of the places in a transaction.

use expect_test::expect_file;

use super::super::{Savepoint, SqlConnection, is_aborted, sealed};
use crate::store::{JoinedConnection, StoreError, sql::tests::golden::Golden};

/// A connection that notes what is sent.
#[derive(Debug, Default)]
struct Sent(Vec<String>);

impl SqlConnection for Sent {}

impl sealed::Sealed for Sent {
    fn connection(&mut self) -> JoinedConnection<'_> {
        JoinedConnection::new(self)
    }

    async fn is_in_transaction(&mut self) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn execute(&mut self, statement: String) -> Result<(), StoreError> {
        self.0.push(statement);
        Ok(())
    }

    async fn query(&mut self, statements: String) -> Result<Vec<Vec<u8>>, StoreError> {
        self.0.push(statements);
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn golden_places_in_a_transaction_are_marked_by_the_same_bytes() {
    let mut sent = Sent::default();
    let mut golden = Golden::default();
    for release in ["a release", "a release that asks"] {
        let place = Savepoint::set(&mut sent).await.expect("it is set");
        let Savepoint(name) = &place;
        let (name, drawn) = (name.clone(), name.strip_prefix("idempotent_"));
        assert_eq!(drawn.map(str::len), Some(32), "{name}");
        place.roll_back(&mut sent).await.expect("it goes back");
        let queries = ["SELECT 1".to_owned(), "SELECT 2".to_owned()];
        match release {
            "a release" => place.release(&mut sent).await.expect("it is released"),
            _ => drop(place.release_and_query(&mut sent, &queries).await),
        }
        for (number, text) in (1..).zip(sent.0.drain(..)) {
            let text = text.replace(&name, "idempotent_<name>");
            golden.add(&format!("{release}, {number}"), &text);
        }
    }
    assert!(!is_aborted(&mut sent).await);
    golden.add("the look for an end", &sent.0.concat());
    golden.is(expect_file!["golden/savepoints.sql"]);
}
