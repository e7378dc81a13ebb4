use http::{HeaderMap, Method};

use super::*;
use crate::{journal::EntryId, key::ClientKey};

const ASKED: [u8; 32] = [1; 32];
const WITHOUT_HEADERS: [u8; 32] = [2; 32];
const OTHER: [u8; 32] = [3; 32];

fn entry(caller: u8, digest: Option<[u8; 32]>, ending: Option<Ending>) -> Entry {
    Entry {
        id: EntryId {
            origin: "https://api.example.com".into(),
            account: String::new(),
            key: ClientKey::new("1").expect("a key"),
        },
        method: Method::POST,
        url: "https://api.example.com/pay".parse().expect("a URL"),
        headers: HeaderMap::new(),
        caller: Some([caller; 32]),
        begun: None,
        digest,
        body: None,
        created: Time::from_micros(0),
        deadline: Time::from_micros(1),
        ending,
    }
}

fn compared(caller: u8, standing: [u8; 32], ending: Option<Ending>) -> Compared {
    let asked = entry(1, Some(ASKED), None);
    let standing = entry(caller, Some(standing), ending);
    compare(&asked, false, Some(WITHOUT_HEADERS), &standing)
}

fn compared_going_on(caller: u8, standing: [u8; 32], ending: Option<Ending>) -> Compared {
    let asked = entry(1, Some(ASKED), None);
    let standing = entry(caller, Some(standing), ending);
    compare(&asked, true, Some(WITHOUT_HEADERS), &standing)
}

#[test]
fn cl10_an_entry_of_an_earlier_release_is_resumed_and_answers_nobody() {
    let over = Some(Ending::Gone);
    for caller in [1, 2] {
        let ended = compared(caller, WITHOUT_HEADERS, over.clone());
        assert_eq!(ended, Compared::ServerKnows);
        let open = compared_going_on(caller, WITHOUT_HEADERS, None);
        assert_eq!(open, Compared::Equal);
    }
    assert_eq!(compared(1, WITHOUT_HEADERS, None), Compared::Equal);
    let asked = entry(1, Some(ASKED), None);
    let of_nobody = Entry {
        caller: None,
        ..asked.clone()
    };
    assert_eq!(compare(&asked, false, None, &of_nobody), Compared::Equal);
}

#[test]
fn cl47_other_credentials_end_an_open_call_only_where_it_goes_on() {
    for standing in [ASKED, WITHOUT_HEADERS] {
        let elsewhere = compared(2, standing, None);
        assert_eq!(elsewhere, Compared::ServerKnows);
        let goes_on = compared_going_on(2, standing, None);
        assert_eq!(goes_on, Compared::Equal);
        let over = compared_going_on(2, standing, Some(Ending::Gone));
        assert_eq!(over, Compared::ServerKnows, "it was told to another");
    }
}

#[test]
fn cl11_a_stream_is_nothing_but_an_open_stream() {
    let asked = entry(1, None, None);
    let bytes = entry(1, Some(ASKED), None);
    assert_eq!(compare(&asked, false, None, &bytes), Compared::ServerKnows);
    for again in [&asked, &bytes] {
        let open = entry(1, None, None);
        assert_eq!(compare(again, false, None, &open), Compared::Equal);
        let over = entry(1, None, Some(Ending::Gone));
        assert_eq!(compare(again, false, None, &over), Compared::ServerKnows);
    }
}

#[test]
fn cl10_other_bytes_of_the_same_caller_are_another_request() {
    for ending in [None, Some(Ending::Gone)] {
        assert_eq!(compared(1, ASKED, ending.clone()), Compared::Equal);
        assert_eq!(compared(1, OTHER, ending.clone()), Compared::Other);
        assert_eq!(compared(2, OTHER, ending), Compared::ServerKnows);
    }
}
