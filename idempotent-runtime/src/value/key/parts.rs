//! The types of the standard library that can be key parts.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

use super::{KeyPart, KeyWriter};

/// Makes a key part of anything that implements `Display`, except for a bare float.
///
/// The displayed text must be the same in every retry.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::key::{Key, text};
///
/// let version = format_args!("{}.{}", 1, 2).to_string();
/// assert_eq!(Key::from_part(&text(&version))?, Key::from_part("1.2")?);
/// # Ok::<(), idempotent_runtime::key::KeyError>(())
/// ```
pub fn text<T: DisplaysAsKey<A> + ?Sized, A>(value: &T) -> Text<'_, T> {
    Text(value)
}

/// A value for [`text`]: anything that implements `Display`, except for a float. Equal floats need
/// not look equal.
///
/// A float has it twice, so the compiler cannot tell which `A` is meant, and names both.
///
/// ```compile_fail,E0283
/// idempotent_runtime::key::text(&1.5_f64);
/// ```
pub trait DisplaysAsKey<A>: fmt::Display {}

/// The `A` of whatever [`DisplaysAsKey`].
#[derive(Debug)]
pub enum AsItDisplays {}

/// The `A` of floats, beside that of all.
#[derive(Debug)]
pub enum AFloatIsNoKey {}

impl<T: fmt::Display + ?Sized> DisplaysAsKey<AsItDisplays> for T {}
impl DisplaysAsKey<AFloatIsNoKey> for f32 {}
impl DisplaysAsKey<AFloatIsNoKey> for f64 {}
impl<T: DisplaysAsKey<AFloatIsNoKey> + ?Sized> DisplaysAsKey<AFloatIsNoKey> for &T {}

/// A key part that is what a value displays as; made by [`text`].
pub struct Text<'a, T: ?Sized>(&'a T);

/// An element of a tuple in the attribute. It must be a key part: that is required here, where it
/// is written, and the tuple around it takes it for granted. So an element that is none is reported
/// once, and at its own place.
pub fn part<K: KeyPart + ?Sized>(part: &K) -> Part<'_, K> {
    Part {
        part,
        write: K::write,
    }
}

/// A value that was seen to be a key part; made by [`part`].
pub struct Part<'a, K: ?Sized> {
    part: &'a K,
    write: fn(&K, &mut KeyWriter),
}

impl<K: ?Sized> fmt::Debug for Part<'_, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Part(…)")
    }
}

#[diagnostic::do_not_recommend]
impl<K: ?Sized> KeyPart for Part<'_, K> {
    fn write(&self, key: &mut KeyWriter) {
        (self.write)(self.part, key);
    }
}

impl<T: ?Sized> fmt::Debug for Text<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Text(…)")
    }
}

impl<T: fmt::Display + ?Sized> KeyPart for Text<'_, T> {
    fn write(&self, key: &mut KeyWriter) {
        key.displayed(self.0);
    }
}

/// Makes key parts of types that are written in one way.
macro_rules! key_parts {
    ($($part:ty $([$($generics:tt)*])?),* => |$it:ident, $key:ident| $write:expr) => {$(
        impl$(<$($generics)*>)? KeyPart for $part {
            fn write(&self, $key: &mut KeyWriter) {
                let $it = self;
                $write;
            }
        }
    )*};
}

key_parts!(str, String => |text, key| key.text(text));
key_parts!(char => |it, key| key.text(it.encode_utf8(&mut [0; 4])));
key_parts!(bool => |it, key| key.text(if *it { "true" } else { "false" }));
key_parts!([u8], [u8; N] [const N: usize], Vec<u8> => |bytes, key| key.bytes(bytes));
key_parts!(u128, i128, IpAddr, Ipv4Addr, Ipv6Addr => |it, key| key.display(it));

/// `None` makes the whole key missing.
impl<K: KeyPart> KeyPart for Option<K> {
    fn write(&self, key: &mut KeyWriter) {
        match self {
            Some(part) => part.write(key),
            None => key.missing(),
        }
    }
}

impl<K: KeyPart + ToOwned + ?Sized> KeyPart for Cow<'_, K> {
    fn write(&self, key: &mut KeyWriter) {
        K::write(self, key);
    }
}

macro_rules! pointers {
    ($($pointer:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<K: KeyPart + ?Sized> KeyPart for $pointer {
            fn write(&self, key: &mut KeyWriter) {
                K::write(self, key);
            }
        }
    )*};
}

pointers!(&K &mut K Box<K> Rc<K> Arc<K>);

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl KeyPart for $integer {
            fn write(&self, key: &mut KeyWriter) {
                #[allow(unused_comparisons, reason = "one body for signed and unsigned integers")]
                let negative = *self < 0;
                key.integer(negative, self.abs_diff(0) as u64);
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

macro_rules! non_zero {
    ($($integer:ty)*) => {
        key_parts!($(NonZero<$integer>),* => |it, key| it.get().write(key));
    };
}

non_zero!(u8 u16 u32 u64 usize u128 i8 i16 i32 i64 isize i128);

macro_rules! tuples {
    ($(($($part:ident)+))+) => {$(
        #[allow(non_snake_case, reason = "each variable is named for the type it has")]
        impl<$($part: KeyPart),+> KeyPart for ($($part,)+) {
            fn write(&self, key: &mut KeyWriter) {
                let ($($part,)+) = self;
                $(key.part($part);)+
            }
        }
    )+};
}

tuples! {
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
}
