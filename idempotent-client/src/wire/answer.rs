//! Responses: they are read if that is needed to know how a call ended, and put together again.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap,
    header::{CONTENT_TYPE, HeaderName},
};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use reqwest::{Body, Response, ResponseBuilderExt as _};

use crate::error::ClientAnswer;
use crate::headers::{is_replayed, verdict};
use crate::outcome::KeyStatus;
use crate::policy::decide::Answered;
use crate::policy::profile::Profile;
use crate::problem::Problem;
use crate::wire::retry_after;
use idempotent_runtime::clock::Clock;

/// The longest response that is read before it is handed on. A response that is cut off half-way is
/// then noticed, and the call is tried again.
const LONGEST: u64 = 1 << 20;

const STATUS: HeaderName = HeaderName::from_static("idempotency-status");

/// Marks a response that another one led to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LedHere {
    /// That one had `Idempotent-Replayed`.
    pub(crate) by_replay: bool,
}

/// A response, with its body where that was read whole.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) response: Response,
    pub(crate) body: Option<Bytes>,
}

impl Read {
    /// Reads the body if it says how long it is, or is a document, which no caller takes piece by
    /// piece. A stream of events is handed on as it comes.
    pub(crate) async fn whole(response: Response) -> reqwest::Result<Self> {
        let is_short = match response.content_length() {
            Some(length) => length <= LONGEST,
            None => is_document(response.headers()),
        };
        if !is_short {
            return Ok(Self {
                response,
                body: None,
            });
        }
        let url = response.url().clone();
        let (parts, mut rest) = http::Response::from(response).into_parts();
        let mut frames = VecDeque::new();
        let mut read = 0;
        let mut trails = false;
        let ended = loop {
            let Some(frame) = rest.frame().await.transpose()? else {
                break true;
            };
            read += frame.data_ref().map_or(0, Bytes::len) as u64;
            trails |= frame.is_trailers();
            frames.push_back(frame);
            if read > LONGEST {
                break false;
            }
        };
        let whole = ended.then(|| concatenate(&frames));
        let body = match &whole {
            Some(whole) if !trails => Body::from(whole.clone()),
            _ => Body::wrap(Resumed { frames, rest }),
        };
        let mut response = http::Response::builder()
            .status(parts.status)
            .version(parts.version)
            .url(url)
            .body(body)
            .expect("every part comes from a response");
        *response.headers_mut() = parts.headers;
        response.extensions_mut().extend(parts.extensions);
        Ok(Self {
            response: response.into(),
            body: whole,
        })
    }

    /// Hides a key that the server says again, so that a printed response does not show it.
    pub(crate) fn hide(&mut self, key: &HeaderName) {
        let headers = self.response.headers_mut().iter_mut();
        for (_, value) in headers.filter(|(name, _)| *name == key) {
            value.set_sensitive(true);
        }
    }

    /// The parts that decide.
    pub(crate) fn answered(&self, profile: &Profile, clock: &dyn Clock) -> Answered {
        let headers = self.response.headers();
        let verdicts = profile.verdicts.iter();
        Answered {
            status: self.response.status(),
            replayed: is_replayed(headers),
            released: self.key_status() == KeyStatus::Released,
            open: self.key_status() == KeyStatus::Open,
            led_here: self.led_here().is_some(),
            retry_after: retry_after::retry_after(headers, clock.now()),
            verdict: verdicts.filter_map(|name| verdict(headers, name)).next(),
            problem: self.problem(),
        }
    }

    /// The word of an error's body about keys.
    pub(crate) fn problem(&self) -> Problem {
        match &self.body {
            Some(body) if self.response.status().as_u16() >= 400 => Problem::read(body),
            _ => Problem::default(),
        }
    }

    /// It is that of an earlier call, or was reached through one that is.
    pub(crate) fn is_replayed(&self) -> bool {
        let led_here = self.led_here();
        led_here.is_some_and(|led| led.by_replay) || is_replayed(self.response.headers())
    }

    fn led_here(&self) -> Option<&LedHere> {
        self.response.extensions().get()
    }

    /// The server's word about the key itself. A replay is of a key that has an outcome, whatever
    /// else it says.
    pub(crate) fn key_status(&self) -> KeyStatus {
        let status = self.response.headers().get(STATUS);
        let says =
            |word: &[u8]| status.is_some_and(|said| said.as_bytes().eq_ignore_ascii_case(word));
        if says(b"ignored") {
            KeyStatus::Ignored
        } else if says(b"released") && !self.is_replayed() {
            KeyStatus::Released
        } else if says(b"open") && !self.is_replayed() {
            KeyStatus::Open
        } else {
            KeyStatus::Unsaid
        }
    }

    /// Keeps what an error can tell of it.
    pub(crate) fn into_answer(self) -> ClientAnswer {
        ClientAnswer {
            status: self.response.status(),
            headers: self.response.headers().clone(),
            body: self.body,
        }
    }
}

/// Whether a body is JSON, XML or a form by its content type.
fn is_document(headers: &HeaderMap) -> bool {
    const DOCUMENTS: [&str; 4] = [
        "application/json",
        "application/x-www-form-urlencoded",
        "application/xml",
        "text/xml",
    ];
    let essence = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok()?.split(';').next())
        .map(|essence| essence.trim().to_ascii_lowercase())
        .unwrap_or_default();
    let is_written_so = |suffix| essence.ends_with(suffix);
    DOCUMENTS.contains(&&*essence) || ["+json", "+xml"].into_iter().any(is_written_so)
}

fn concatenate(frames: &VecDeque<Frame<Bytes>>) -> Bytes {
    let mut pieces = frames.iter().filter_map(Frame::data_ref);
    match (pieces.next(), pieces.next()) {
        (None, _) => Bytes::new(),
        (Some(only), None) => only.clone(),
        (Some(first), Some(second)) => {
            let mut whole = BytesMut::from(&first[..]);
            whole.extend_from_slice(second);
            pieces.for_each(|piece| whole.extend_from_slice(piece));
            whole.freeze()
        }
    }
}

/// A body whose beginning was read already.
struct Resumed {
    frames: VecDeque<Frame<Bytes>>,
    rest: Body,
}

impl http_body::Body for Resumed {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<reqwest::Result<Frame<Bytes>>>> {
        match self.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.frames.iter().filter_map(Frame::data_ref);
        let read = read.map(|bytes| bytes.len() as u64).sum::<u64>();
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(read + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(read + upper);
        }
        hint
    }
}
