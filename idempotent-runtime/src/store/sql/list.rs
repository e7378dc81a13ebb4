//! Lists of records, along an index, with values written out: an operator asks rarely.

use super::{
    COLUMNS, Cell, Row, TablePrefix, answers::corrupt, attention, listed::listed, migrate::Schema,
    no_row,
};
use crate::store::{ListOrder, ListPosition, ListedPage, ListedRecord, StoreError};

pub(crate) const DOING: &str = "listing records";

/// Two statements in one message: the time, and a page of records. `0 * created` makes a number of
/// 64 bits of the length, which Postgres gives as one of 32.
pub(crate) fn text<DB: Schema>(
    prefix: &TablePrefix,
    order: ListOrder<'_>,
    after: Option<&ListPosition>,
    limit: u32,
) -> String {
    let (table, now, none) = (format!("{prefix}records"), DB::NOW, DB::bytes(b""));
    let columns = COLUMNS.map(|column| if column == "outcome" { &*none } else { column });
    let columns = columns.join(", ");
    let id = |it: &ListPosition| DB::bytes(it.id.as_bytes());
    let behind = after.map(|it| format!(" AND id > {}", id(it)));
    let behind = behind.unwrap_or_default();
    let (index, which, by) = match order {
        ListOrder::Everything => (String::new(), format!("0 = 0{behind}"), "id"),
        ListOrder::Attention => {
            let (max, states) = (i64::MAX, attention());
            let which = format!("purge_from = {max} AND state IN ({states}){behind}");
            (DB::by_index(&format!("{table}_purge")), which, DB::ID_APART)
        }
        ListOrder::Operation(name) => {
            let newer = after.map(|it| {
                let (created, id) = (it.created.as_micros(), id(it));
                format!(" AND created <= {created} AND (created < {created} OR id < {id})")
            });
            let which = DB::of_operation(name) + &newer.unwrap_or_default();
            let index = DB::by_index(&format!("{table}_operation"));
            (index, which, "created DESC, id DESC")
        }
    };
    format!(
        "SELECT {now};
SELECT {columns}, 0 * created + coalesce(length(outcome), 0) FROM {table} {index}
WHERE {which} ORDER BY {by} LIMIT {limit}"
    )
}

/// Sends such a text, and reads its page.
pub(crate) async fn list<DB: Schema>(
    connection: &mut DB::Connection,
    text: String,
    limit: u32,
) -> Result<ListedPage, StoreError> {
    let rows = DB::query(connection, text, DOING).await?;
    let (first, rows) = rows.split_first().ok_or_else(|| no_row(DOING))?;
    let now = number(first, 0, "now").time();
    let now = now.map_err(|damaged| corrupt(damaged, DOING))?;
    let is_last = rows.len() < limit as usize;
    let mut page = ListedPage {
        now,
        is_last,
        damaged: 0,
        records: Vec::with_capacity(rows.len()),
    };
    let mut why = None;
    for row in rows {
        match read(row) {
            Ok(record) => page.records.push(record),
            Err(error) => why = Some(error),
        }
    }
    page.damaged = (rows.len() - page.records.len()) as u64;
    match why {
        // Behind which record the next page begins, nothing tells.
        Some(error) if page.records.is_empty() && !is_last => Err(error),
        _ => Ok(page),
    }
}

fn read(row: &impl Row) -> Result<ListedRecord, StoreError> {
    let bytes = number(row, COLUMNS.len(), "outcome").some_number();
    let bytes = bytes.map_err(|damaged| corrupt(damaged, DOING))?;
    let (id, record) = listed(row, DOING)?;
    Ok(ListedRecord {
        id,
        record,
        outcome_bytes: bytes.unsigned_abs(),
    })
}

fn number<'r, R: Row>(row: &'r R, place: usize, column: &'static str) -> Cell<'r, R> {
    Cell { row, place, column }
}
