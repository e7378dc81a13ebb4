//! The pieces of a script in Lua.

use super::{Piece, words::Words};

/// Everything that can be cut out of a script.
pub(crate) fn pieces(script: &str) -> Vec<Piece> {
    let words = Words::of(script);
    let mut pieces = Vec::new();
    for place in 0..words.len() {
        match words.at(place) {
            "if" | "elseif" => {
                let end = words.end(place + 1, |end| words.at(end) == "then");
                for instead in ["true", "false"] {
                    pieces.push(Piece::new(&words, place + 1..end, instead));
                }
            }
            "and" | "or" => sides(&words, place, &mut pieces),
            "after" if words.before(place) != "function" => {
                let (operands, closes) = words.list(place + 2, &[]);
                for operand in operands {
                    let alone = words.text(operand);
                    pieces.push(Piece::new(&words, place..closes + 1, alone));
                }
            }
            "clock" if words.before(place) != "function" => {
                pieces.push(Piece::new(&words, place..place + 3, "'1'"));
            }
            _ => step(&words, place, &mut pieces),
        }
    }
    pieces
}

/// A line that only calls the server, or that only assigns, is not there.
fn step(words: &Words<'_>, place: usize, pieces: &mut Vec<Piece>) {
    let calls = words.at(place) == "redis.call" && words.at(place + 1) == "(";
    if words.begins_line(place) && (calls || words.at(place + 1) == "=") {
        let end = words.end(place + 1, |end| words.begins_line(end));
        pieces.push(Piece::new(words, place..end, ""));
    }
}

/// One side of an `and` or `or` stands for both, and one of two values for a choice between them.
fn sides(words: &Words<'_>, place: usize, pieces: &mut Vec<Piece>) {
    let is_or = words.at(place) == "or";
    let outside = |at: usize| {
        words.is(at, &["if", "elseif", "return", "=", ","]) || !is_or && words.at(at) == "or"
    };
    let over = |at: usize| {
        let operator = words.is(at, &["and", "or"]);
        words.is(at, &["then", "or", ","])
            || !is_or && words.at(at) == "and"
            || words.begins_line(at) && !operator
    };
    let begin = words.begin(place, outside);
    let end = words.end(place + 1, over);
    let is_value = matches!(words.before(begin), "=" | "return" | ",");
    let chosen = (begin..place).any(|at| words.at(at) == "and");
    if is_value && is_or && chosen {
        return;
    }
    let is_choice = is_value && !is_or && words.at(end) == "or";
    let (all, left) = match is_choice {
        true => {
            let last = words.end(end + 1, over);
            (begin..last, end + 1..last)
        }
        false => (begin..end, begin..place),
    };
    for side in [left, place + 1..end] {
        pieces.push(Piece::new(words, all.clone(), words.text(side)));
    }
}
