//! Why a message cannot be sent.

/// The longest topic, key and id, in bytes.
pub(crate) const LONGEST_NAME: usize = 255;

/// How many bytes all headers of a message may have together.
pub(crate) const LONGEST_HEADERS: usize = 8 * 1024;

/// Why a message cannot be sent. Nothing was written, and the transaction goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The topic, the key or the id has no byte, or more than 255.
    #[error("its {part} has {bytes} bytes, and 1 to {LONGEST_NAME} are possible")]
    #[non_exhaustive]
    Length {
        /// `"topic"`, `"key"` or `"id"`.
        part: &'static str,
        /// How many bytes it has.
        bytes: usize,
    },
    /// A broker could not carry the header: its name is not of visible ASCII characters without a
    /// colon, or its value holds a control character.
    #[error(
        "no broker carries the header {place}: names are visible ASCII characters but the colon, and values hold no control characters"
    )]
    #[non_exhaustive]
    Header {
        /// Its place among the headers; the first one is 0.
        place: usize,
    },
    /// The headers are too long together.
    #[error("its headers have {bytes} bytes, and {LONGEST_HEADERS} are possible")]
    #[non_exhaustive]
    Headers {
        /// How many bytes they have.
        bytes: usize,
    },
    /// Payload and headers are too long together.
    #[error(
        "payload and headers have {bytes} bytes, and the outbox takes {max}: raise its `max_payload`, or send a reference"
    )]
    #[non_exhaustive]
    Payload {
        /// How many bytes they have.
        bytes: usize,
        /// How many the outbox takes.
        max: usize,
    },
}
