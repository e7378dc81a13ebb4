//! The meaning of an error of sqlx, MariaDB or MySQL for a caller.

use sqlx::{Error, mysql::MySqlDatabaseError};

use crate::store::{
    StoreError, StoreErrorKind,
    sql::{self, kind_on_the_way},
};

/// Gives an error its kind, and keeps it as the source.
pub(crate) fn of(error: Error, doing: &'static str) -> StoreError {
    let (kind, doing) = (kind(&error), sql::doing(&error, doing));
    StoreError::new(kind, doing).with_source(error)
}

/// Tells whether another transaction was let through in place of this statement, which was undone.
pub(super) fn is_deadlock(error: &Error) -> bool {
    number(error) == Some(1213)
}

/// Tells whether the server itself refused a statement, which was undone so.
pub(super) fn was_undone(error: &StoreError) -> bool {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(|cause| cause.downcast_ref::<Error>());
    cause.is_some_and(|cause| said(cause).is_some()) && error.kind() != StoreErrorKind::Unavailable
}

/// Tells whether a savepoint is not there.
pub(super) fn is_no_savepoint(error: &Error) -> bool {
    number(error) == Some(1305)
}

/// Tells whether a table is not there.
pub(super) fn is_missing_table(error: &Error) -> bool {
    number(error) == Some(1146)
}

/// Tells whether a change of a table was refused because it has been made: the column or the index
/// is there, or is gone.
pub(super) fn is_there_already(error: &Error) -> bool {
    matches!(number(error), Some(1060 | 1061 | 1091))
}

fn number(error: &Error) -> Option<u16> {
    said(error).map(MySqlDatabaseError::number)
}

/// The error that the server sent, if it comes from the server.
fn said(error: &Error) -> Option<&MySqlDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

fn kind(error: &Error) -> StoreErrorKind {
    let Some(said) = said(error) else {
        return kind_on_the_way(error);
    };
    match kind_of_number(said.number()) {
        // For an unknown number, the class of SQLSTATE tells at least that a connection failed.
        StoreErrorKind::Other if said.code().is_some_and(|state| state.starts_with("08")) => {
            StoreErrorKind::Unavailable
        }
        kind => kind,
    }
}

/// The numbers of the two servers' error references. SQLSTATE is too coarse: most of them share
/// `HY000`.
fn kind_of_number(number: u16) -> StoreErrorKind {
    match number {
        // Too many connections, of all or of this user; a host that failed to log in too often.
        1040 | 1203 | 1226 | 1129
        // A server that shuts down; a connection that it ended, or that timed out.
        | 1053 | 1152 | 1158..=1161 | 1184 | 1927 | 3169 | 4031
        // A node of a cluster that has not joined it; a server that is offline for a while, has no
        // thread left, or has prepared as many statements as it may.
        | 1047 | 3032 | 1135 | 1461
        // Errors that a proxy passes on: the numbers are those of clients, and the proxy was the
        // client of a server that has gone. The last one is ProxySQL's own, for a server that it
        // does not reach.
        | 2000..=2999 | 9001 => StoreErrorKind::Unavailable,
        // A lock that was not to be had, a deadlock, a row that changed under a statement.
        1205 | 1213 | 1020
        // A table that changed under a statement, or under the transaction's snapshot: nothing was
        // done.
        | 1615 | 1412
        // A statement that was stopped, or took too long on MariaDB or MySQL; another node of the
        // cluster was first.
        | 1317 | 1969 | 3024 | 3101 => StoreErrorKind::Busy,
        // No right to the database, the table, a column, an administrator's statement.
        1044 | 1142 | 1143 | 1227
        // A server, transaction, storage engine or table that may only be read.
        | 1290 | 1792 | 1836 | 1874 | 1036 => StoreErrorKind::Denied,
        // The disk, the tablespace, the memory or the locks; a quota.
        1021 | 1026 | 1114 | 1037 | 1038 | 1041 | 1206
        // More than the redo log, a packet or a column takes.
        | 1118 | 1153 | 1301 | 1406 => StoreErrorKind::Full,
        // A user, password, host or way of logging in that the server does not know; a locked
        // account, an old password.
        1045 | 1130 | 1251 | 1524 | 1698 | 1820 | 1862 | 3118 | 4151
        // A server that wants encryption.
        | 3159
        // No database, an unknown one; no InnoDB; a binary log of statements, which cannot be
        // written at READ COMMITTED.
        | 1046 | 1049 | 1286 | 1665
        // A server that does not know what we say: not one of those that we know.
        | 1064 | 1193 | 1231 | 1305 => StoreErrorKind::Configuration,
        // Our statements are fixed texts and our values have one form: these are about tables,
        // columns, character sets and constraints that are missing or not ours.
        1146 | 1054 | 1136 | 1048 | 1062 | 1264 | 1265 | 1364 | 1366 | 3819 | 4025 => {
            StoreErrorKind::Schema
        }
        // A table or an index that is damaged, or whose file is missing.
        1194 | 1195 | 1712 | 1877 | 1932 => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Other,
    }
}
