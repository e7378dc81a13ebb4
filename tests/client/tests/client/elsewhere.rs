//! Requests that are sent elsewhere than their caller wrote: those that follow a redirect, and
//! those that another middleware sends to another address.

use idempotent_client::{IdempotencyKeys, Profile};
use reqwest::Request;

use crate::kit::{Ending, Passing, Process, Server, answer, client};

const CONDITIONS: [(&str, &str); 4] = [
    ("if-match", "\"7\""),
    ("if-none-match", "\"8\""),
    ("if-modified-since", "Sun, 06 Nov 1994 12:00:00 GMT"),
    ("if-unmodified-since", "Sun, 06 Nov 1994 12:00:00 GMT"),
];

/// They were about what the call was to change, and it is done. With them, the request for the
/// result would be refused.
#[tokio::test]
async fn cl34_conditions_and_a_method_in_a_header_are_for_the_call_alone() {
    let others = [
        ("content-language", "en"),
        ("repr-digest", "sha-256=:AA==:"),
        ("x-http-method", "DELETE"),
        ("x-http-method-override", "DELETE"),
        ("x-method-override", "DELETE"),
    ];
    let of_the_call = [&CONDITIONS[..], &others].concat();
    let see = answer(303).with("location", "/receipts/1");
    let server = Server::doing([see, answer(200)]).await;
    let mut call = client().post(&server.url("/pay"));
    for (name, value) in &of_the_call {
        call = call.header(*name, *value);
    }
    let call = call.header("accept", "text/plain").bearer_auth("token");
    assert_eq!(call.send().await.expect("an answer").status(), 200);
    let [pay, look] = &server.seen()[..] else {
        panic!("it was led on once")
    };
    for (name, value) in of_the_call {
        assert_eq!(pay.headers[name], value);
        assert!(!look.headers.contains_key(name), "{name}");
    }
    assert_eq!(look.headers["accept"], "text/plain");
    assert_eq!(look.headers["authorization"], "Bearer token");
}

#[tokio::test]
async fn cl34_a_read_keeps_its_conditions_wherever_it_is_led() {
    let see = answer(302).with("location", "/receipts/1");
    let server = Server::doing([see, answer(304)]).await;
    let mut read = client().http.get(server.url("/receipts"));
    for (name, value) in CONDITIONS {
        read = read.header(name, value);
    }
    assert_eq!(read.send().await.expect("an answer").status(), 304);
    let seen = server.seen();
    for (name, value) in CONDITIONS {
        assert_eq!(seen[1].headers[name], value);
    }
}

/// Only that middleware knows that it was no redirect.
#[tokio::test]
async fn cl34_a_middleware_that_changes_the_address_is_named_where_a_key_left_its_origin() {
    let server = Server::doing([answer(201)]).await;
    let url = server.url("/pay").parse().expect("a URL");
    let keys = IdempotencyKeys::builder(Profile::ietf());
    let elsewhere = move |request: &mut Request| request.url_mut().clone_from(&url);
    let Process { client, .. } = Process::around(keys, Passing(elsewhere));
    let ended = client.post("http://payments/pay").body("pay").send().await;
    let told = ended.ending().to_string();
    for cause in ["redirect", "middleware"] {
        assert!(told.contains(cause), "{told}");
    }
}
