//! The details of a refusal in protocol buffers, as `google.rpc.Status` holds them: `RetryInfo` and
//! `ErrorInfo`.
//!
//! Each of them is a few fields. To name them to a library for protocol buffers would take more
//! words than to write them here.

use super::Code;
use crate::{
    framing::{write_framed, write_number},
    http::problem::Problem,
};

/// The domain that names the errors of this library, among those of others.
const DOMAIN: &str = "idempotent-runtime";

/// Writes a `google.rpc.Status`.
pub(super) fn status(code: Code, problem: &Problem) -> Vec<u8> {
    let mut status = Vec::new();
    number(&mut status, 1, code.0.into());
    text(&mut status, 2, problem.detail());
    if let Some(seconds) = problem.retry_after() {
        // A `RetryInfo` holds a `Duration`, which begins with its seconds.
        let mut delay = Vec::new();
        number(&mut delay, 1, seconds);
        let mut retry = Vec::new();
        bytes(&mut retry, 1, &delay);
        any(&mut status, "google.rpc.RetryInfo", &retry);
    }
    let mut info = Vec::new();
    text(&mut info, 1, &problem.kind().code().to_ascii_uppercase());
    text(&mut info, 2, DOMAIN);
    entry(&mut info, "key_action", problem.key_action().as_str());
    if let Some(reason) = problem.reason() {
        entry(&mut info, "reason", reason.as_str());
    }
    if let Some(reference) = problem.operation_ref() {
        entry(&mut info, "operation_ref", reference);
    }
    any(&mut status, "google.rpc.ErrorInfo", &info);
    status
}

/// Adds one of the `details` of a status: an `Any`.
fn any(status: &mut Vec<u8>, name: &str, message: &[u8]) {
    let mut any = Vec::new();
    text(&mut any, 1, &format!("type.googleapis.com/{name}"));
    bytes(&mut any, 2, message);
    bytes(status, 3, &any);
}

/// Adds an entry to the `metadata` of an `ErrorInfo`.
fn entry(info: &mut Vec<u8>, name: &str, value: &str) {
    let mut entry = Vec::new();
    text(&mut entry, 1, name);
    text(&mut entry, 2, value);
    bytes(info, 3, &entry);
}

fn number(message: &mut Vec<u8>, field: u64, number: u64) {
    write_number(message, field << 3);
    write_number(message, number);
}

fn text(message: &mut Vec<u8>, field: u64, text: &str) {
    bytes(message, field, text.as_bytes());
}

fn bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    const LENGTH_DELIMITED: u64 = 2;
    write_number(message, field << 3 | LENGTH_DELIMITED);
    write_framed(message, bytes);
}
