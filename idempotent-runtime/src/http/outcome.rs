//! The fate of the key when the handler has answered.

use http::StatusCode;

use crate::{
    attempt::Stage,
    http::{rules::UnstorableResponse, server_errors::ServerErrors},
};

/// The word of a handler about its own response, in place of its status: put it among the
/// response's extensions.
///
/// With the feature `axum` it is a part of a response by itself: `(StatusCode::CONFLICT,
/// ReplayHint::Retryable, "sold out")`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplayHint {
    /// This is the outcome, with any status: it is stored, and answers every retry.
    Final,
    /// Nothing happened: the key is released, and a retry runs again.
    Retryable,
    /// It is unknown what happened: retries are told so until an operator settles it.
    Uncertain,
    /// It happened, and its response is not to be stored, because it holds a secret, say. A retry
    /// is told that there is a result that cannot be given.
    NotStored,
}

/// Stands among the extensions of a response that tells of a call which another one holds, or has
/// done already. Its key is released so that a retry reaches the handler, and not because nothing
/// happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AboutAnotherCall;

/// The fate of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Store,
    /// The route says that its handler may run again if there is nothing to replay.
    StoreOrRelease,
    /// It happened, and there is nothing to replay.
    Discard,
    /// There is no handler for it, so nothing is to be remembered for longer than a lease.
    NotBegun,
    Release,
    Uncertain,
}

impl Verdict {
    /// How far a handler has come that has answered so; `None` if it may run again. With a stage it
    /// does not run again, even if reading and sending its body takes long.
    pub(crate) fn stage(self) -> Option<Stage> {
        match self {
            Verdict::Store | Verdict::Discard => Some(Stage::Happened),
            Verdict::Uncertain => Some(Stage::InDoubt),
            Verdict::NotBegun | Verdict::Release | Verdict::StoreOrRelease => None,
        }
    }
}

impl From<ReplayHint> for Verdict {
    fn from(mark: ReplayHint) -> Self {
        match mark {
            ReplayHint::Final => Verdict::Store,
            ReplayHint::Retryable => Verdict::Release,
            ReplayHint::Uncertain => Verdict::Uncertain,
            ReplayHint::NotStored => Verdict::Discard,
        }
    }
}

impl From<ServerErrors> for Verdict {
    fn from(policy: ServerErrors) -> Self {
        match policy {
            ServerErrors::Replay => Verdict::Store,
            ServerErrors::Release => Verdict::Release,
            ServerErrors::Uncertain => Verdict::Uncertain,
        }
    }
}

/// The worth of a response that is, by its status, the outcome.
impl From<UnstorableResponse> for Verdict {
    fn from(unrepeatable: UnstorableResponse) -> Self {
        match unrepeatable {
            UnstorableResponse::Refused => Verdict::Store,
            UnstorableResponse::RunAgain => Verdict::StoreOrRelease,
        }
    }
}

/// Decides by the status, unless the handler said otherwise.
///
/// The released answers are those of a server before it begins: who are you, not so, not without a
/// condition, too large, too often, not now. Every other answer is the outcome, an error of the
/// client's too: the handler came to it, and a retry must not come to another.
pub(crate) fn verdict(
    status: StatusCode,
    mark: Option<ReplayHint>,
    errors: ServerErrors,
) -> Verdict {
    if let Some(mark) = mark {
        return mark.into();
    }
    match status {
        // The connection went over to another protocol; that cannot be repeated.
        StatusCode::SWITCHING_PROTOCOLS => Verdict::Discard,
        // It is about something that the client has already, and the next client may have something
        // else.
        StatusCode::NOT_MODIFIED => Verdict::Release,
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::PROXY_AUTHENTICATION_REQUIRED
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::LENGTH_REQUIRED
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::URI_TOO_LONG
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::EXPECTATION_FAILED
        | StatusCode::MISDIRECTED_REQUEST
        | StatusCode::TOO_EARLY
        | StatusCode::UPGRADE_REQUIRED
        | StatusCode::PRECONDITION_REQUIRED
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        | StatusCode::SERVICE_UNAVAILABLE => Verdict::Release,
        status if status.is_server_error() => errors.into(),
        _ => Verdict::Store,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_means_what_the_table_says() {
        for (verdict_is, statuses) in [
            (
                Verdict::Store,
                &[
                    200, 201, 202, 204, 206, 301, 303, 308, 400, 402, 404, 406, 409, 410, 412, 422,
                ][..],
            ),
            (
                Verdict::Release,
                &[
                    304, 401, 403, 405, 407, 408, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429,
                    431, 503,
                ],
            ),
            (Verdict::Uncertain, &[500, 501, 502, 504, 507, 599]),
            (Verdict::Discard, &[101]),
        ] {
            for status in statuses {
                let status = StatusCode::from_u16(*status).expect("a status");
                assert_eq!(
                    verdict(status, None, ServerErrors::Uncertain),
                    verdict_is,
                    "{status}"
                );
            }
        }
    }

    #[test]
    fn a_mark_counts_more_than_the_status_in_both_directions() {
        let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
        let failed = StatusCode::INTERNAL_SERVER_ERROR;
        let policy = ServerErrors::Release;
        assert_eq!(
            verdict(unprocessable, Some(ReplayHint::Retryable), policy),
            Verdict::Release
        );
        assert_eq!(
            verdict(failed, Some(ReplayHint::Final), policy),
            Verdict::Store
        );
        assert_eq!(
            verdict(failed, Some(ReplayHint::Uncertain), policy),
            Verdict::Uncertain
        );
        assert_eq!(
            verdict(StatusCode::OK, Some(ReplayHint::NotStored), policy),
            Verdict::Discard
        );
    }
}
