//! How our tables come to be: a migrator of our own, with a table of its versions, so that the
//! application's migrations never meet it.

use super::{
    Cell, Dialect, Row, TablePrefix,
    answers::corrupt,
    no_row,
    version::{self, Found, SchemaStep},
};
use crate::store::{StoreError, StoreErrorKind};

pub(crate) const DOING: &str = "migrating the schema";

/// A database in which the tables of a store stand.
pub(crate) trait Schema: Dialect {
    /// The time in microseconds.
    const NOW: &'static str;

    /// Every step that was ever released, oldest first: the version of the schema is the number of
    /// steps. A released step never changes.
    ///
    /// A step changes nothing where what it makes is there, or is refused for that: the versions
    /// may have been deleted with all other rows, as test suites do.
    fn steps(prefix: &TablePrefix) -> [SchemaStep; 3];

    /// The statement that makes the table of the versions.
    fn schema_table(prefix: &TablePrefix) -> String;

    /// Counts the tables of this name, without a look at the table: that would wait for a lock on
    /// it.
    fn stands(table: &str) -> String;

    /// The condition under which a row is of this operation, for the index of operations.
    fn of_operation(name: &str) -> String {
        format!("operation = {}", Self::text(name))
    }

    /// Stands behind the name of a table that is read along an index.
    fn by_index(index: &str) -> String;

    /// Orders by the id without the index of the ids.
    const ID_APART: &'static str = "id";

    /// The schema that stands there. It counts the table first: a transaction of Postgres takes no
    /// statement any more behind one that failed.
    fn find(
        connection: &mut Self::Connection,
        prefix: &TablePrefix,
        doing: &'static str,
    ) -> impl Future<Output = Result<Found, StoreError>> + Send {
        async move {
            let table = Self::stands(&format!("{prefix}schema"));
            if numbers::<Self, 1>(connection, table, doing).await? == [0] {
                return Ok(Found::default());
            }
            let found = numbers::<Self, 2>(connection, version::look(prefix), doing);
            found.await.map(Found::from)
        }
    }

    /// The statement that notes that a step was taken.
    fn applied(prefix: &TablePrefix, reached: Found) -> String {
        format!("{};\n", version::note(prefix, reached, Self::NOW))
    }

    /// Takes a step, and notes that. Both are one message, of a transaction that is open.
    fn take(
        connection: &mut Self::Connection,
        step: &SchemaStep,
        applied: String,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let text = format!("{}{applied}", step.text);
        async move { Self::query(connection, text, DOING).await.map(drop) }
    }

    /// [Takes the steps](take_missing) that are missing, by one process at a time.
    fn migrate_by(
        steps: &[SchemaStep],
        connection: &mut Self::Connection,
        prefix: &TablePrefix,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The statements that make the tables, for people who run their own migrations.
pub(crate) fn ddl<DB: Schema>(prefix: &TablePrefix) -> String {
    let steps = DB::steps(prefix);
    let taken = version::missing(&steps, Found::default());
    let taken =
        taken.map(|(reached, step)| format!("{}{}", step.text, DB::applied(prefix, reached)));
    DB::schema_table(prefix) + &taken.collect::<String>()
}

/// Brings the tables to this build's version. Safe to call at every start, and by several processes
/// at once.
pub(crate) async fn migrate<DB: Schema>(
    connection: &mut DB::Connection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    DB::migrate_by(&DB::steps(prefix), connection, prefix).await
}

/// Takes the steps that the schema lacks, while no other process does.
pub(crate) async fn take_missing<DB: Schema>(
    steps: &[SchemaStep],
    connection: &mut DB::Connection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    let found = DB::find(connection, prefix, DOING).await?;
    if version::is_usable(found, steps.len(), DOING)? {
        return Ok(());
    }
    DB::query(connection, DB::schema_table(prefix), DOING).await?;
    for (reached, step) in version::missing(steps, found) {
        DB::take(connection, step, DB::applied(prefix, reached)).await?;
    }
    Ok(())
}

/// Tells whether there is nothing to do, as at most starts. A look takes no lock and needs no right
/// to create.
pub(crate) async fn is_done<DB: Schema>(
    steps: &[SchemaStep],
    connection: &mut DB::Connection,
    prefix: &TablePrefix,
) -> Result<bool, StoreError> {
    let found = DB::find(connection, prefix, DOING).await?;
    if !version::is_usable(found, steps.len(), DOING)? {
        return Ok(false);
    }
    find_tables::<DB>(connection, prefix, DOING).await?;
    Ok(true)
}

/// Tells whether this build can use the tables.
pub(crate) async fn check<DB: Schema>(
    connection: &mut DB::Connection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    const DOING: &str = "checking the schema";
    let found = DB::find(connection, prefix, DOING).await?;
    version::check(found, DB::steps(prefix).len(), DOING)?;
    find_tables::<DB>(connection, prefix, DOING).await
}

/// Tells the id of the store.
pub(crate) async fn find_id<DB: Schema>(
    connection: &mut DB::Connection,
    prefix: &TablePrefix,
) -> Result<String, StoreError> {
    const DOING: &str = "looking for the store";
    let rows = DB::query(connection, version::id(prefix), DOING).await?;
    let row = rows.first().ok_or_else(|| {
        StoreError::new(StoreErrorKind::Schema, DOING).with_source(format!(
            "the row of version 1 is missing in `{prefix}schema`: restore it, or empty that table for `migrate()` to fill it"
        ))
    })?;
    let id = Cell {
        row,
        place: 0,
        column: "store",
    };
    id.text().map_err(|damaged| corrupt(damaged, DOING))
}

/// Finds the tables that the steps have made, which may be gone whatever that of the versions says:
/// an operator has to know that records were lost.
async fn find_tables<DB: Schema>(
    connection: &mut DB::Connection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    for table in ["records", "steps"] {
        let text = DB::stands(&format!("{prefix}{table}"));
        if numbers::<DB, 1>(connection, text, doing).await? == [0] {
            let source = format!(
                "the table `{prefix}{table}` is missing, although `{prefix}schema` says that it was made: restore it, or drop `{prefix}schema` for `migrate()` to make what is missing"
            );
            return Err(StoreError::new(StoreErrorKind::Schema, doing).with_source(source));
        }
    }
    Ok(())
}

/// The numbers in the first row of an answer.
pub(crate) async fn numbers<DB: Dialect, const N: usize>(
    connection: &mut DB::Connection,
    text: String,
    doing: &'static str,
) -> Result<[i64; N], StoreError> {
    let rows = DB::query(connection, text, doing).await?;
    numbers_of(&rows, doing)
}

/// The numbers in the first of these rows.
pub(crate) fn numbers_of<const N: usize>(
    rows: &[impl Row],
    doing: &'static str,
) -> Result<[i64; N], StoreError> {
    let row = rows.first().ok_or_else(|| no_row(doing))?;
    let mut numbers = [0; N];
    for (place, number) in numbers.iter_mut().enumerate() {
        let cell = Cell {
            row,
            place,
            column: "a number",
        };
        *number = cell
            .some_number()
            .map_err(|damaged| corrupt(damaged, doing))?;
    }
    Ok(numbers)
}
