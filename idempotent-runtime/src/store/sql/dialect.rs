//! The databases of sqlx, and how each says what all of them do.

use std::future::poll_fn;

use sqlx::{AssertSqlSafe, Either, Executor};

use super::Row;
use crate::{framing::Hex, store::StoreError};

/// A database of sqlx in which tables of ours can stand.
pub trait Dialect: sqlx::Database<Row: Row> {
    /// Gives an error of the driver its kind, and keeps it as the source.
    fn store_error(error: sqlx::Error, doing: &'static str) -> StoreError;

    /// Runs one text, whose values are written out in it, and hands over each row, and behind its
    /// rows how each statement ended. So a connection of the application's keeps no prepared
    /// statement of ours, and a proxy may pool transactions.
    fn each(
        connection: &mut Self::Connection,
        text: String,
        take: impl FnMut(Either<Self::QueryResult, Self::Row>) + Send,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// The same, and returns all rows.
    fn send(
        connection: &mut Self::Connection,
        text: String,
    ) -> impl Future<Output = sqlx::Result<Vec<Self::Row>>> + Send {
        async move {
            let mut rows = Vec::new();
            Self::each(connection, text, |next| rows.extend(next.right())).await?;
            Ok(rows)
        }
    }

    /// The same, with an error of the store's.
    fn query(
        connection: &mut Self::Connection,
        text: String,
        doing: &'static str,
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send {
        let sent = Self::send(connection, text);
        async move { sent.await.map_err(|error| Self::store_error(error, doing)) }
    }

    /// Bytes, written out. A session may take an empty text for NULL, but no empty bytes.
    #[must_use]
    fn bytes(bytes: &[u8]) -> String {
        format!("x'{}'", Hex(bytes))
    }

    /// A text, written out.
    #[must_use]
    fn text(text: &str) -> String;
}

/// Passes a text on to the driver. A test of ours notes it.
pub(crate) fn sent(text: String) -> AssertSqlSafe<String> {
    #[cfg(test)]
    super::tests::golden::note(&text);
    AssertSqlSafe(text)
}

/// Makes a dialect of each database, whose errors a function knows.
macro_rules! dialects {
    ($($feature:literal $database:ident $store_error:path, |$it:ident| $text:expr $(, $bytes:item)?;)*) => { $(
        #[cfg(feature = $feature)]
        impl Dialect for sqlx::$database {
            fn store_error(error: sqlx::Error, doing: &'static str) -> StoreError {
                $store_error(error, doing)
            }

            async fn each(
                connection: &mut Self::Connection,
                text: String,
                mut take: impl FnMut(Either<Self::QueryResult, Self::Row>) + Send,
            ) -> sqlx::Result<()> {
                let mut answers = connection.fetch_many(sqlx::raw_sql(sent(text)));
                while let Some(next) = poll_fn(|cx| answers.as_mut().poll_next(cx)).await {
                    take(next?);
                }
                Ok(())
            }

            fn text(text: &str) -> String {
                let $it = Self::bytes(text.as_bytes());
                $text
            }

            $($bytes)?
        }
    )* };
}

dialects! {
    "mysql" MySql crate::store::mysql::failure::of, |bytes| format!("_utf8mb4 {bytes}");
    "postgres" Postgres crate::store::postgres::failure::of, |bytes| format!("convert_from({bytes}, 'UTF8')"),
    /// Without a backslash, which `standard_conforming_strings` gives another meaning.
    fn bytes(bytes: &[u8]) -> String {
        format!("decode('{}', 'hex')", Hex(bytes))
    };
    "sqlite" Sqlite crate::store::sqlite::failure::of, |bytes| format!("CAST({bytes} AS TEXT)");
}
