//! The pieces of a statement in SQL.

use super::{Piece, words::Words};

/// The words of SQL that end a condition.
const CONDITION_ENDS: &[&str] = &[
    "AND",
    "OR",
    "THEN",
    ",",
    ";",
    "ORDER",
    "LIMIT",
    "RETURNING",
    "FOR",
    "UNION",
    "WHERE",
    "ON",
];
const CHOOSING: &[&str] = &["greatest", "least", "max", "min", "last_insert_id"];

/// Everything that can be cut out of a statement. These words are the time, and each has another
/// that stands in its place.
pub(crate) fn pieces(statement: &str, times: &[(&str, &str)]) -> Vec<Piece> {
    let words = Words::of(statement);
    let mut pieces = Vec::new();
    for place in 0..words.len() {
        condition(&words, place, &mut pieces);
        assignments(&words, place, &mut pieces);
        operands(&words, place, &mut pieces);
        order(&words, place, &mut pieces);
        let is_name = words.is(place.saturating_sub(1), &["AS"]);
        let time = times.iter().find(|(time, _)| words.at(place) == *time);
        if let Some((_, instead)) = time.filter(|_| !is_name) {
            pieces.push(Piece::new(&words, place..place + 1, *instead));
        }
    }
    pieces
}

/// A condition is always true. It is also never true, if another one would do or another value
/// stands for it.
fn condition(words: &Words<'_>, before: usize, pieces: &mut Vec<Piece>) {
    let begin = before + 1;
    let begins = ["WHERE", "ON", "AND", "OR", "WHEN"];
    let chooses = words.is(before, &["("]) && words.before(before) == "IF";
    let is_begun = words.is(before, &begins) && !words.is(begin, &["CONFLICT", "DUPLICATE"])
        || chooses
        || words.at(before) == "(" && before > 0 && words.is(before - 1, &begins);
    let end = words.end(begin, |place| words.is(place, CONDITION_ENDS));
    if !is_begun || words.is(begin, &["true"]) {
        return;
    }
    let condition = words.text(begin..end);
    if words.is(before, &["WHEN"]) && before > 1 && words.is(before - 2, &["CASE"]) {
        pieces.push(Piece::new(words, begin..end, words.before(before)));
        pieces.push(Piece::new(words, begin..end, "NULL"));
        return;
    }
    pieces.push(Piece::new(
        words,
        begin..end,
        format!("({condition} OR TRUE)"),
    ));
    if chooses || words.is(before, &["OR", "WHEN"]) || words.is(end, &["OR"]) {
        pieces.push(Piece::new(
            words,
            begin..end,
            format!("({condition} AND FALSE)"),
        ));
    }
}

/// A column stays what it is.
fn assignments(words: &Words<'_>, before: usize, pieces: &mut Vec<Piece>) {
    let is_conflict =
        words.is(before, &["UPDATE"]) && before > 1 && words.is(before - 2, &["DUPLICATE"]);
    if !is_conflict && !words.is(before, &["SET"]) {
        return;
    }
    for item in words.list(before + 1, &["WHERE", "RETURNING", "FROM"]).0 {
        if words.at(item.start) != "(" {
            let column = words.at(item.start);
            pieces.push(Piece::new(
                words,
                item,
                format!("{column} = TABLE.{column}"),
            ));
            continue;
        }
        // `(column, …) = (SELECT value, …`
        let (columns, closes) = words.list(item.start + 1, &[]);
        let (values, _) = words.list(closes + 4, &["FROM"]);
        for (column, value) in columns.into_iter().zip(values) {
            let stays = format!("TABLE.{}", words.text(column));
            pieces.push(Piece::new(words, value, stays));
        }
    }
}

/// One of several values is the only one, and nothing is taken off.
fn operands(words: &Words<'_>, place: usize, pieces: &mut Vec<Piece>) {
    if words.at(place) == "-" && words.at(place + 1).starts_with(['$', '?']) {
        pieces.push(Piece::new(words, place..place + 2, ""));
    }
    if words.at(place + 1) != "(" || !words.is(place, CHOOSING) {
        return;
    }
    let (operands, closes) = words.list(place + 2, &[]);
    for operand in operands {
        let alone = format!("({})", words.text(operand));
        pieces.push(Piece::new(words, place..closes + 1, alone));
    }
}

/// The rows that there are, and their order.
fn order(words: &Words<'_>, place: usize, pieces: &mut Vec<Piece>) {
    let (length, instead) = match words.at(place) {
        ">" => (1, ">=".to_owned()),
        "LEFT" => (1, String::new()),
        "LIMIT" => (2, "LIMIT 1000".to_owned()),
        "ORDER" => (3, format!("ORDER BY {} DESC", words.at(place + 2))),
        "ON" if words.at(place + 1) == "CONFLICT" => (7, String::new()),
        _ => return,
    };
    pieces.push(Piece::new(words, place..place + length, instead));
}
