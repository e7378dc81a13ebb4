use std::{collections::VecDeque, io, pin::pin};

use http::HeaderValue;

use super::*;

/// A body of these frames, in which a text stands for a failure.
struct Sent(VecDeque<Result<Frame<Bytes>, &'static str>>);

impl Sent {
    /// So many pieces of one byte each.
    fn crumbs(many: usize) -> (Self, Vec<u8>) {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(many).collect();
        let frames = bytes.iter().map(|byte| Ok(data(&[*byte])));
        (Self(frames.collect()), bytes)
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = self.0.pop_front();
        Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
    }
}

fn data(piece: &[u8]) -> Frame<Bytes> {
    Frame::data(Bytes::copy_from_slice(piece))
}

fn signed() -> HeaderMap {
    HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("\"1\""))])
}

/// The data of each frame, and whether the last one is a failure.
async fn frames_of(body: Body<Sent>) -> (Vec<Bytes>, bool) {
    let mut body = pin!(body);
    let mut frames = Vec::new();
    loop {
        match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            Some(Ok(frame)) => frames.extend(frame.into_data()),
            ended => return (frames, ended.is_some()),
        }
    }
}

#[tokio::test]
async fn however_small_the_pieces_are_what_was_read_of_them_is_one() {
    const MANY: usize = 100_000;
    let (body, bytes) = Sent::crumbs(MANY);
    let Ok(whole) = read_to_end(body, MANY).await else {
        panic!("it is as long as allowed")
    };
    assert_eq!(whole.bytes, bytes);

    let (body, bytes) = Sent::crumbs(MANY);
    let Err(Unfinished::TooLong(body)) = read_to_end(body, MANY - 3).await else {
        panic!("it is longer than allowed")
    };
    let (frames, _) = frames_of(body).await;
    let lengths: Vec<_> = frames.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [MANY - 2, 1, 1]);
    assert_eq!(frames.concat(), bytes);

    let (mut body, bytes) = Sent::crumbs(MANY);
    body.0.push_back(Err("the network"));
    let Err(Unfinished::Failed(body)) = read_to_end(body, MANY).await else {
        panic!("it breaks off")
    };
    let (frames, failed) = frames_of(body).await;
    assert!(failed);
    assert_eq!(frames, [bytes]);
}

#[tokio::test]
async fn a_single_piece_is_not_copied_whatever_empty_ones_are_around_it() {
    let piece = Bytes::from(vec![7; 64]);
    let frames = [
        data(b""),
        Frame::data(piece.clone()),
        data(b""),
        Frame::trailers(signed()),
    ];
    let body = Sent(frames.into_iter().map(Ok).collect());

    let Ok(whole) = read_to_end(body, 64).await else {
        panic!("it is as long as allowed")
    };

    assert_eq!(whole.bytes.as_ptr(), piece.as_ptr());
    assert_eq!(whole.bytes.len(), piece.len());
    assert_eq!(whole.trailers, Some(signed()));
}

/// A server ends a body that says that it is at its end, or sends it with its length: either would
/// make a whole of a part.
#[tokio::test]
async fn what_broke_off_is_not_at_its_end_before_it_has_said_so() {
    let frames = [Ok(data(b"amount")), Err("the network")];
    let body = Sent(frames.into_iter().collect());
    let Err(Unfinished::Failed(body)) = read_to_end(body, 64).await else {
        panic!("it breaks off")
    };
    let mut body = pin!(body);
    for is_failure in [false, true] {
        assert!(!body.is_end_stream());
        assert_eq!(body.size_hint().upper(), None);
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        assert_eq!(frame.expect("it goes on").is_err(), is_failure);
    }
    assert!(body.is_end_stream());
}

/// HTTP/1.1 sends no trailers with a body that is sent with its length.
#[tokio::test]
async fn what_has_trailers_is_not_at_its_end_before_it_has_given_them() {
    let body: Body<Sent> = Body::whole(Whole {
        bytes: Bytes::from_static(b"amount"),
        trailers: Some(signed()),
    });
    let mut body = pin!(body);
    for is_trailers in [false, true] {
        assert!(!body.is_end_stream());
        assert_eq!(body.size_hint().upper(), None);
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        let frame = frame.expect("it goes on").expect("it is whole");
        assert_eq!(frame.is_trailers(), is_trailers);
    }
    assert!(body.is_end_stream());
}
