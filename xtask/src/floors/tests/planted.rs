//! Arrows that run up, in forms that were not seen once.

use super::{HOUSE, House, flaws, flaws_of};

const ROOT: &str = "mod low; mod beside; mod room; mod high;\n";
const UP: &str = "room → high runs up";
const NO_ROOT: &str = "the root itself may not be imported: name the room";
const NO_GLOB: &str = "a glob at the root hides rooms: name what it passes on";
const CRANE: &str = "room names the feature crane of high, which is above";

/// The text of a room, and its flaw with the line.
const IN_A_ROOM: &[(&str, usize, &str)] = &[
    ("use crate as me;", 1, NO_ROOT),
    ("use crate::{self as me};", 1, NO_ROOT),
    ("use super::super as up;", 1, NO_ROOT),
    ("use super::super::{self as up};", 1, NO_ROOT),
    ("use crate::*;", 1, NO_ROOT),
    ("use super::super::*;", 1, NO_ROOT),
    ("\nuse crate::{low::Stone, *};", 2, NO_ROOT),
    ("extern crate self as me;", 1, NO_ROOT),
    ("use crate::r#high::Tower;", 1, UP),
    ("fn f() { crate::r#high::go() }", 1, UP),
    (
        "struct A {\n#[serde(with = \"crate::high::x\")] a: u8 }",
        2,
        UP,
    ),
    (
        "#[serde(with = r#\"super::super::high\"#)] struct A;",
        1,
        UP,
    ),
    ("#[derive(\n    crate::high::D\n)] struct A;", 2, UP),
    (
        "#[cfg_attr(all(), derive(crate::high::D))] struct A;",
        1,
        UP,
    ),
    ("#![allow(crate::high::x)]", 1, UP),
    ("fn f() { quoted! { #(crate::high::Tower) } }", 1, UP),
    (
        "macro_rules! m { () => { use $crate::high::Tower; } }",
        1,
        UP,
    ),
    ("fn f() -> impl Sized + use<> { crate::high::Tower }", 1, UP),
    (
        "fn f() -> impl A + use<> { 1 }\nfn g(_: crate::high::X) {}",
        2,
        UP,
    ),
    ("struct A(pub (crate::high::Tower, u8));", 1, UP),
];

#[test]
fn an_arrow_in_a_room_is_found() {
    for (text, line, flaw) in IN_A_ROOM {
        let expected = format!("src/room/inner.rs:{line}: {flaw}");
        assert_eq!(flaws(&HOUSE, text), [expected], "{text}");
    }
}

#[test]
fn an_arrow_under_a_condition_that_holds_outside_of_tests_is_found() {
    for condition in [
        "not(test)",
        "any(test, feature = \"x\")",
        "any(feature = \"x\", shuttle)",
        "not(any(test, shuttle))",
        "not(all(test, shuttle))",
        "all(unix, not(shuttle))",
        "all(unix, shuttle)",
        "all(unix, any(test, unix))",
    ] {
        let text = format!("#[cfg({condition})]\nuse crate::high::Tower;");
        let expected = format!("src/room/inner.rs:2: {UP}");
        assert_eq!(flaws(&HOUSE, &text), [expected], "{condition}");
    }
}

#[test]
fn an_item_of_tests_hides_itself_alone() {
    for item in [
        "enum E { A, #[cfg(test)] B }",
        "struct S { #[cfg(test)] a: u8, b: u8 }",
        "#[cfg(test)] use std::{fs, io};",
        "#[cfg(test)] const A: fn() = || {};",
        "#[cfg(test)] static A: u8 = 1;",
        "#[cfg(test)] mod tests { fn f() {} }",
        "#[cfg(test)] pub(crate) const fn f<A, B>() {}",
        "#[cfg(test)] thread_local! { static A: u8 = 1 }",
        "fn f() { #[cfg(test)] go(); }",
        "fn f() { match a { #[cfg(test)] A { b } => { c } _ => {} } }",
        "mod m { fn f() { #![cfg(test)] } }",
        "mod m { #![cfg(test)] fn f() {} }",
    ] {
        let text = format!("{item}\nfn g() -> crate::high::Tower {{ h() }}");
        let expected = format!("src/room/inner.rs:2: {UP}");
        assert_eq!(flaws(&HOUSE, &text), [expected], "{item}");
    }
}

/// The text of a root, and of a room that names something of it.
const THROUGH_THE_ROOT: &[(&str, &str)] = &[
    ("pub use crate::high as web;", "use crate::web::Tower;"),
    ("pub use crate::high::Tile as Slate;", "use crate::Slate;"),
    ("pub use crate::high::r#Tile;", "use crate::Tile;"),
    ("pub use high::roof;", "use crate::roof::Tile;"),
    ("pub use self::high::roof;", "use crate::roof::Tile;"),
    (
        "use crate::high::{roof, x}; pub use roof::Tile;",
        "use crate::{Tile};",
    ),
    (
        "use crate::high::roof; pub use crate::{roof::{Tile as Slate}};",
        "fn f(_: crate::Slate) {}",
    ),
    (
        "pub mod facade { pub use crate::high::Tower as Spire; }",
        "use crate::facade::Spire;",
    ),
    (
        "use crate::high::roof; pub mod facade { pub use crate::roof::Tile; }",
        "fn f(_: crate::facade::Tile) {}",
    ),
    (
        "pub mod facade { pub use crate::high::Tower; }",
        "use crate::facade::*;",
    ),
    (
        "pub mod facade { pub use crate::high::Tower; } pub use facade as front;",
        "use crate::front::Tower;",
    ),
    // A type and a function, or a module and a function, may have one name.
    (
        "pub use crate::high::thing; pub use crate::low::thing;",
        "use crate::thing;",
    ),
    (
        "pub use crate::low::thing; pub use crate::high::thing;",
        "use crate::thing;",
    ),
    ("pub use crate::high::low;", "use crate::low;"),
    // Names that go round in a ring.
    (
        "pub use b::a; pub use a::b; pub use crate::high::a;",
        "use crate::a;",
    ),
];

#[test]
fn an_arrow_through_a_name_of_the_root_is_found() {
    for (root, text) in THROUGH_THE_ROOT {
        let whole = format!("{ROOT}{root}");
        let found = flaws_of(&HOUSE, &[("lib.rs", &whole), ("room/inner.rs", text)]);
        assert_eq!(found, [format!("src/room/inner.rs:1: {UP}")], "{root}");
    }
}

#[test]
fn a_root_that_hides_rooms_is_a_flaw() {
    for (root, flaw) in [
        ("extern crate self as me;", NO_ROOT),
        ("pub use crate as me;", NO_ROOT),
        ("mod facade { pub use super::*; }", NO_ROOT),
        ("pub use crate::high::*;", NO_GLOB),
        ("pub use high::*;", NO_GLOB),
        ("mod facade { pub use super::high::*; }", NO_GLOB),
        ("mod low { use crate::high::Tower; }", "low → high runs up"),
    ] {
        let found = flaws_of(&HOUSE, &[("lib.rs", &format!("{ROOT}{root}"))]);
        assert_eq!(found, [format!("src/lib.rs:2: {flaw}")], "{root}");
    }
}

#[test]
fn an_arrow_in_a_file_of_its_own_is_found() {
    for declaration in [
        "#[cfg(test)] use std;\nmod real;",
        "#[cfg(test)] mod real; #[cfg(not(test))] mod real;",
        "#[cfg(test)] #[path = \"t.rs\"] mod real; #[cfg(not(test))] mod real;",
    ] {
        let arrow = ("room/inner/real.rs", "use crate::high::Tower;");
        let found = flaws_of(&HOUSE, &[("room/inner.rs", declaration), arrow]);
        let expected = format!("src/room/inner/real.rs:1: {UP}");
        assert_eq!(found, [expected], "{declaration}");
    }
    let exported = "#[macro_export] macro_rules! tower { () => { 1 } }";
    let call = ("room/inner.rs", "fn f() { crate::tower!() }");
    let found = flaws_of(&HOUSE, &[("high.rs", exported), call]);
    assert_eq!(found, [format!("src/room/inner.rs:1: {UP}")]);
}

#[test]
fn documentation_and_items_of_tests_are_no_arrows() {
    for text in [
        "//! See [`Tower`](crate::high::Tower).\nfn f() {}",
        "#[doc = \"crate::high::Tower\"] fn f() {}",
        "#[cfg_attr(docsrs, doc = \"crate::high::Tower\")] fn f() {}",
        "fn f() { go(\"crate::high::Tower\") }",
        "#[error(\"see crate::high::Tower\")] struct A;",
        "#[cfg_attr(test, derive(crate::high::D))] struct A;",
        "#[cfg(test)] fn f<A, B>() { crate::high::go() }",
        "#[cfg(test)] const A: T = T { b } + crate::high::B;",
        "#[derive(crate::high::D)] #[cfg(test)] struct A;",
        "#[cfg(all(unix, test))] use crate::high::Tower;",
        "#![cfg(test)]\nuse crate::high::Tower;",
        "//! Text.\n#![cfg(test)]\nuse crate::high::Tower;",
        "mod tests { #![cfg(test)] use crate::high::Tower; }",
        "pub(in super::super) fn f() {}",
        "use ::high::Tower;",
    ] {
        assert_eq!(flaws(&HOUSE, text), [""; 0], "{text}");
    }
    let declaration = "#[cfg(test)] #[path = \"t.rs\"] mod tests;";
    let elsewhere = ("room/t.rs", "use crate::high::Tower;");
    let found = flaws_of(&HOUSE, &[("room/inner.rs", declaration), elsewhere]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_feature_of_a_room_above_is_a_flaw() {
    for (text, line) in [
        ("#[cfg(feature = \"crane\")] fn f() {}", 1),
        ("#[cfg(any(unix,\nnot(feature = \"crane\")))] mod a {}", 2),
        ("#[cfg_attr(feature = \"crane\", inline)] fn f() {}", 1),
        ("fn f() {\n    if cfg!(feature = \"crane\") {}\n}", 2),
    ] {
        let expected = format!("src/room/inner.rs:{line}: {CRANE}");
        assert_eq!(flaws(&HOUSE, text), [expected], "{text}");
    }
}

#[test]
fn other_features_are_no_flaw() {
    for text in [
        "#[cfg(feature = \"rope\")] fn f() {}",
        "#[cfg(all(test, feature = \"crane\"))] fn f() {}",
        "#[cfg(test)] mod tests { #[cfg(feature = \"crane\")] fn f() {} }",
        "// feature = \"crane\"\nfn f() { feature = \"crane\"; }",
    ] {
        assert_eq!(flaws(&HOUSE, text), [""; 0], "{text}");
    }
    let above = [("high.rs", "#[cfg(feature = \"crane\")] pub struct Tower;")];
    assert_eq!(flaws_of(&HOUSE, &above), [""; 0]);
}

#[test]
fn a_known_feature_is_no_flaw_until_it_is_gone() {
    let house = House {
        known_features: &[("room/inner.rs", "crane")],
        ..HOUSE
    };
    let text = "#[cfg(feature = \"crane\")] fn f() {}";
    assert_eq!(flaws(&house, text), [""; 0]);
    let gone = "src: the feature crane in room/inner.rs is gone: take it from the list";
    assert_eq!(flaws(&house, ""), [gone]);
}
