#[cfg(all(feature = "chrono", feature = "time", feature = "jiff"))]
mod moments;
mod shapes;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

use super::*;

fn key<K: KeyPart + ?Sized>(part: &K) -> Key {
    Key::from_part(part).expect("it is a key")
}

fn readable<K: KeyPart + ?Sized>(part: &K) -> String {
    String::from_utf8(key(part).into_readable()).expect("it is text")
}

fn assert_all_differ(keys: &[Key]) {
    for (index, one) in keys.iter().enumerate() {
        for (further, other) in keys.iter().enumerate().skip(index + 1) {
            assert_ne!(one.framed(), other.framed(), "keys {index} and {further}");
        }
    }
}

#[test]
fn b03_parts_do_not_run_into_each_other() {
    assert_all_differ(&[
        key("abc"),
        key(&("a", "bc")),
        key(&("ab", "c")),
        key(&("abc", "")),
        key(&("", "abc")),
        key(&("a", "b", "c")),
        key(&(("a", "b"), "c")),
        key(&("a", ("b", "c"))),
        key(&(("a", ("b", "c")),)),
        key(&("a:b", "c")),
        key(&("a", "b:c")),
        key(&Template::new().part("ab").literal("c")),
        key(&Template::new().part("a").literal("bc")),
        key(&Template::new().literal("a").part("bc")),
    ]);
    let of = |a, b| key(&Template::new().part(a).literal(":").part(b));
    assert_ne!(of("a:b", "c").framed(), of("a", "b:c").framed());
}

/// The same as `derive(KeyPart)` makes of `struct Line { order: u64, number: u32 }`.
#[derive(Clone, Copy)]
struct Line(u64, u32);

impl KeyPart for Line {
    fn write(&self, key: &mut KeyWriter) {
        KeyWriter::part::<u64>(key, &self.0);
        KeyWriter::part::<u32>(key, &self.1);
    }
}

/// The same as it makes of `struct Newtype<K>(K)`.
#[derive(Clone, Copy)]
struct Newtype<K>(K);

impl<K: KeyPart> KeyPart for Newtype<K> {
    fn write(&self, key: &mut KeyWriter) {
        KeyWriter::part::<K>(key, &self.0);
    }
}

#[test]
fn b03_a_template_of_one_part_is_that_part() {
    let line = Newtype(Line(1, 2));
    let of = |part: &dyn Fn(Template) -> Template| key(&part(Template::new()));
    for (template, part) in [
        (of(&|it| it.part("a")), key("a")),
        (of(&|it| it.part(&("a", 1))), key(&("a", 1))),
        (of(&|it| it.part(&("a", (1, 2)))), key(&("a", (1, 2)))),
        (of(&|it| it.part(&Some((1, 2)))), key(&(1, 2))),
        (of(&|it| it.part(&line)), key(&line)),
        (of(&|it| it.part(&Newtype(line))), key(&Newtype(line))),
        (of(&|it| it.part(&Some(&line))), key(&Some(&line))),
        (of(&|it| it.part(&((1, 2),))), key(&((1, 2),))),
        (of(&|it| it.part(&(Some((1, 2)),))), key(&(Some((1, 2)),))),
        (of(&|it| it.part(&b"ab"[..])), key(&b"ab"[..])),
        (of(&|it| it.part(&(&b"ab"[..],))), key(&(&b"ab"[..],))),
    ] {
        assert_eq!(template, part);
    }
    let inside = (Template::new().part(&(1, 2)), 3);
    assert_eq!(key(&inside), key(&((1, 2), 3)));
    assert_all_differ(&[
        key(&inside),
        key(&(1, 2, 3)),
        of(&|it| it.part(&(1, 2)).literal("-").part(&3)),
    ]);
    assert_eq!(
        Key::from_part(&Template::new().part(&(None::<u8>, None::<u8>))),
        Err(KeyError::Missing)
    );
}

#[test]
fn b03_an_option_frames_what_it_holds() {
    assert_eq!(key(&Some((1, 2))), key(&(1, 2)));
    assert_eq!(key(&(Some((1, 2)), 3)), key(&((1, 2), 3)));
    assert_all_differ(&[key(&(Some((1, 2)), 3)), key(&(1, 2, 3))]);
}

/// A type of the application's that writes nothing for one of its values.
struct Written(Option<u8>);

impl KeyPart for Written {
    fn write(&self, key: &mut KeyWriter) {
        if let Some(number) = self.0 {
            key.text(&number.to_string());
        }
    }
}

#[test]
fn b03_a_part_that_writes_nothing_keeps_its_place() {
    let (nothing, one) = (|| Written(None), || Written(Some(1)));
    assert_all_differ(&[
        key(&(nothing(), one())),
        key(&(one(), nothing())),
        key(&(one(),)),
        key(&(nothing(), one(), nothing())),
        key(&((nothing(), one()), nothing())),
    ]);
    let template = |first, last| Template::new().part(&first).part(&last);
    assert_all_differ(&[
        key(&template(nothing(), one())),
        key(&template(one(), nothing())),
    ]);
}

#[test]
fn b05_a_key_of_several_arguments_reads_as_they_do() {
    assert_eq!(readable(&(7_u8, "cart", true, 'x')), "7, cart, true, x");
    assert_eq!(
        readable(&("shop", (1, 2), Some("y"), "z")),
        "shop, (1, 2), y, z"
    );
    let template = Template::new().literal("cart ").part(&7);
    let template = template.literal(":").part("x").literal("!");
    assert_eq!(readable(&template), "cart 7:x!");
    let eight = (1_u8, 2_u16, 3_u32, 4_u64, 5_i8, 6_i16, 7_i32, 8_i64);
    assert_eq!(readable(&eight), "1, 2, 3, 4, 5, 6, 7, 8");
    assert_eq!(
        key(&eight),
        key(&(
            &1,
            &"2",
            &3_u128,
            &4_i128,
            &5_usize,
            &6_isize,
            &text(&7),
            &"8".to_owned()
        ))
    );
}

#[test]
fn b10_zero_and_false_are_values() {
    for (key, text) in [
        (readable(&0), "0"),
        (readable(&false), "false"),
        (readable("False"), "False"),
        (readable("None"), "None"),
        (readable(&'\0'), "\0"),
        (readable(" "), " "),
    ] {
        assert_eq!(key, text);
    }
}

#[test]
fn b10_a_missing_part_is_a_missing_key() {
    for part in [
        &None::<u8> as &dyn KeyPart,
        &Some(None::<u8>),
        &(None::<u8>, None::<&str>),
        &(None::<u8>, (None::<u8>, Some(None::<&str>))),
        &Template::new().literal("order ").part(&None::<u8>),
        &Template::new(),
        &(None::<u8>, "x"),
        &("x", (1, Some(None::<u8>))),
        &("", None::<u8>),
        &("x".repeat(LONGEST + 1), None::<u8>),
        &Template::new().part("shop").literal(":").part(&None::<u8>),
        &Template::new().part(&("shop", None::<u8>)),
    ] {
        assert_eq!(Key::from_part(part), Err(KeyError::Missing));
    }
}

#[test]
fn b10_nothing_but_empty_text_is_an_empty_key() {
    let empty = Err(KeyError::Empty);
    assert_eq!(Key::from_part(""), empty);
    assert_eq!(Key::from_part(&Some("")), empty);
    assert_eq!(Key::from_part(&b""[..]), empty);
    assert_eq!(Key::from_part(&text("")), empty);
    assert_eq!(Key::from_part(&("", "")), empty);
    assert_eq!(
        Key::from_part(&Template::new().part("").literal(":").part("")),
        empty
    );
    assert_eq!(readable(&("", "x")), ", x");
}

#[test]
fn b11_a_key_has_64_kib_at_most() {
    let longest = "x".repeat(LONGEST);
    assert_eq!(readable(&longest), longest);
    let (half, other) = longest.split_at(1000);
    assert_eq!(key(&(half, other)).into_readable().len(), LONGEST + 2);
    let limit = LONGEST;
    let too_long = |bytes| Err(KeyError::TooLong { bytes, limit });
    assert_eq!(
        Key::from_part(&format!("{longest}x")),
        too_long(LONGEST + 1)
    );
    assert_eq!(Key::from_part(&(&longest, 12)), too_long(LONGEST + 2));
    assert_eq!(
        Key::from_part(&text(&"x".repeat(1 << 20))),
        too_long(1 << 20)
    );
    assert_eq!(Key::from_part(&vec![0_u8; 1 << 20]), too_long(1 << 20));
    assert_eq!(
        Key::from_part(&Template::new().part(&1).literal(&longest)),
        too_long(LONGEST + 1)
    );
}

#[test]
fn what_is_too_long_is_not_kept() {
    struct Endless;
    impl KeyPart for Endless {
        fn write(&self, key: &mut KeyWriter) {
            let long = "x".repeat(LONGEST);
            for _ in 0..1_000 {
                key.text(&long);
                key.display(&long);
                key.part(&Template::new().part(&long));
            }
        }
    }
    let mut writer = KeyWriter::new();
    Endless.write(&mut writer);
    assert!(writer.kept() < 2 * LONGEST);
    let (bytes, limit) = (3_000 * LONGEST, LONGEST);
    assert_eq!(writer.finish(), Err(KeyError::TooLong { bytes, limit }));
}

#[test]
fn every_unicode_plane_and_nul_can_be_in_a_key() {
    let planes = (0..=16_u32).filter_map(|plane| char::from_u32(plane << 16 | 0x0041));
    let text: String = planes
        .chain(['\0', '\n', '\u{7f}', '\u{fffd}', '\u{200d}', '\u{10ffff}'])
        .collect();
    assert_eq!(text.chars().count(), 23);
    assert_eq!(readable(&text), text);
    assert_ne!(key(&text), key(&text[..text.len() - 4]));
    for character in text.chars() {
        assert_eq!(readable(&character), character.to_string());
        assert_ne!(key(&("a", character)), key(&("a", character, "")));
    }
    assert_ne!(key("é"), key("e\u{301}"), "text is compared byte for byte");
}

#[test]
fn the_type_is_no_part_of_a_key() {
    let one = key("1");
    for other in [
        key(&1_u8),
        key(&1_i64),
        key(&1_u128),
        key(&NonZero::new(1_u32)),
        key(&'1'),
        key(&text(&1)),
    ] {
        assert_eq!(one, other);
    }
    assert_ne!(one, key(b"1"), "bytes are not text");
}

#[test]
fn integers_are_written_in_decimal() {
    assert_eq!(readable(&u64::MAX), u64::MAX.to_string());
    assert_eq!(readable(&i64::MIN), i64::MIN.to_string());
    assert_eq!(readable(&u128::MAX), u128::MAX.to_string());
    assert_eq!(readable(&i128::MIN), i128::MIN.to_string());
    assert_eq!(readable(&-7_i8), "-7");
    assert_eq!(readable(&NonZero::<i16>::MIN), "-32768");
}

#[test]
fn pointers_are_what_they_point_at() {
    let one = key("a");
    let mut owned = "a".to_owned();
    for other in [
        key(&Box::new("a")),
        key(&Arc::<str>::from("a")),
        key(&Rc::new(owned.clone())),
        key(&Cow::Borrowed("a")),
        key(&Some(&&"a")),
        key(&("a",)),
        key(&Template::new().part("a")),
        key(&&mut owned),
    ] {
        assert_eq!(one, other);
    }
    assert_eq!(key(&vec![1_u8, 255]), key(&[1_u8, 255]));
    assert_eq!(key(&vec![1_u8, 255]).into_readable(), [1, 255]);
}

#[test]
fn addresses_are_written_as_people_do() {
    assert_eq!(readable(&IpAddr::from([127, 0, 0, 1])), "127.0.0.1");
    assert_eq!(readable(&Ipv6Addr::LOCALHOST), "::1");
}

#[test]
fn a_display_that_fails_is_an_error() {
    struct Fails;
    impl std::fmt::Display for Fails {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    assert_eq!(Key::from_part(&text(&Fails)), Err(KeyError::Unwritable));
    assert_eq!(
        Key::from_part(&Template::new().part(&(1, text(&Fails)))),
        Err(KeyError::Unwritable)
    );
}

#[test]
fn a_single_part_is_read_from_the_memory_it_was_written_to() {
    let key = key(&"x".repeat(500));
    let address = key.framed().as_ptr();
    let readable = key.into_readable();
    assert_eq!(readable.as_ptr(), address);
}

#[test]
fn debug_output_shows_no_keys() {
    let template = Template::new().part("4242");
    let shown = format!("{:?} {:?} {template:?}", key("4242"), text("4242"));
    assert!(!shown.contains("42"));
}

#[test]
fn frames_are_those_of_every_release() {
    let part = (
        1_u8,
        ("é", ""),
        b"\xff",
        Template::new().part("a").literal("-").part("b"),
    );
    let expected = b"\"\x011(\"\x02\xc3\xa9\"\x00)b\x01\xff(\"\x01a=\x01-\"\x01b)";
    assert_eq!(key(&part).framed(), expected);
    let line = Newtype(Line(1, 2));
    assert_eq!(key(&line).framed(), b"(\"\x011\"\x012)");
    let template = Template::new().part(&line).literal("-").part(&(3,));
    assert_eq!(key(&template).framed(), b"(\"\x011\"\x012)=\x01-\"\x013");
}

#[cfg(feature = "uuid")]
#[test]
fn a_uuid_is_its_lower_case_text() {
    let id = uuid::Uuid::from_u128(0xABCD << 112);
    assert_eq!(readable(&id), "abcd0000-0000-0000-0000-000000000000");
    assert_eq!(key(&id), key(&text(&id)));
}

#[cfg(feature = "ulid")]
#[test]
fn a_ulid_is_its_canonical_text() {
    assert_eq!(readable(&ulid::Ulid::nil()), "00000000000000000000000000");
}

#[cfg(feature = "rust_decimal")]
#[test]
fn equal_decimals_are_one_key() {
    use rust_decimal::Decimal;
    assert_eq!(key(&Decimal::new(100, 2)), key(&1));
    assert_eq!(readable(&Decimal::new(-1250, 3)), "-1.25");
    let mut negative_zero = Decimal::new(0, 3);
    negative_zero.set_sign_negative(true);
    assert_eq!(readable(&negative_zero), "0");
    assert_eq!(readable(&Decimal::new(1200, 0)), "1200");
}
