//! What settings cannot be.

use http::StatusCode;

use crate::{
    error::Error,
    handle::Idempotency,
    http::{
        grpc,
        in_flight_limit::Bounds,
        patience::Patience,
        rules::{Protocol, Rules},
    },
    record::limits::{check_durations, check_lease},
    request::check::check_expired,
};

pub(super) fn check(handle: &Idempotency, rules: &Rules) -> Result<(), Error> {
    if let Some(mistake) = &rules.mistake {
        return Err(mistake.clone());
    }
    check_refusals(&[rules.mismatch_status, rules.in_flight_status])?;
    check_patience(&[rules.patience, rules.stream_patience])?;
    if rules.protocol == Protocol::GrpcUnary && !grpc::is_kept_by(&rules.headers) {
        return Err(Error::InvalidPolicy(
            "a response of gRPC is none without `content-type`, `grpc-status`, `grpc-message`, `grpc-status-details-bin` and `grpc-encoding`: keep them",
        ));
    }
    let defaults = handle.defaults();
    let (ttl, lease) = (
        rules.ttl.unwrap_or(defaults.ttl),
        rules.lease.unwrap_or(defaults.lease),
    );
    check_durations(ttl, lease, handle.timer())?;
    check_lease(Some(ttl), rules.lease)?;
    check_expired(rules.on_expired, defaults.audit_retention)
}

/// A bound of 0 is a mistake: every request would be refused.
pub(super) fn check_bounds(bounds: Bounds) -> Result<(), Error> {
    let Bounds {
        in_all,
        streams,
        of_one_caller,
    } = bounds;
    if [in_all, streams, of_one_caller].contains(&0) {
        return Err(Error::InvalidPolicy(
            "at least one handler has to run at a time, and one response to stream: leave `max_in_flight`, `max_streams` and `max_in_flight_per_caller` out where there is to be no bound",
        ));
    }
    Ok(())
}

/// Nothing arrives in no time at all: every request whose body is not there yet would be refused.
pub(super) fn check_patience(patiences: &[Patience]) -> Result<(), Error> {
    let is_none = |it: &Patience| it.between.is_zero() || it.in_all.is_zero();
    if patiences.iter().any(is_none) {
        return Err(Error::InvalidPolicy(
            "a body takes its time: give `body_timeout`, `body_deadline`, `stream_timeout` and `stream_deadline` more than none",
        ));
    }
    Ok(())
}

/// A client takes any other status for the result of its request.
pub(super) fn check_refusals(statuses: &[StatusCode]) -> Result<(), Error> {
    let refuses = |status: &StatusCode| status.is_client_error() || status.is_server_error();
    if statuses.iter().all(refuses) {
        return Ok(());
    }
    Err(Error::InvalidPolicy(
        "a refusal has a status from 400 to 599: see `mismatch_status`, `in_flight_status` and `unscoped_status`",
    ))
}
