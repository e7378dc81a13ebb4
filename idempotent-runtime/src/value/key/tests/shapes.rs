//! Templates of parts of every shape.

use proptest::{collection::vec, prelude::*};

use super::*;

/// A key part as applications make them.
#[derive(Debug, Clone)]
enum Shape {
    Text(String),
    Bytes(Vec<u8>),
    Number(i64),
    /// An application's part that writes several values at once.
    Values(Vec<u8>),
    Some(Box<Shape>),
    /// A struct or a tuple; of one field it is a newtype.
    Fields(Vec<Shape>),
    Template(Box<Shape>),
    Label(Box<Shape>, String),
}

impl KeyPart for Shape {
    fn write(&self, key: &mut KeyWriter) {
        match self {
            Self::Text(text) => text.write(key),
            Self::Bytes(bytes) => bytes.write(key),
            Self::Number(number) => number.write(key),
            Self::Values(values) => values.iter().for_each(|value| value.write(key)),
            Self::Some(part) => Some(&**part).write(key),
            Self::Fields(fields) => fields.iter().for_each(|field| key.part(field)),
            Self::Template(part) => Template::new().part(&**part).write(key),
            Self::Label(part, text) => Template::new().part(&**part).literal(text).write(key),
        }
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let value = prop_oneof![
        "[a-c]{0,3}".prop_map(Shape::Text),
        vec(any::<u8>(), 0..3).prop_map(Shape::Bytes),
        any::<i64>().prop_map(Shape::Number),
        vec(any::<u8>(), 0..3).prop_map(Shape::Values),
    ];
    value.prop_recursive(5, 24, 3, |inside| {
        prop_oneof![
            inside.clone().prop_map(|part| Shape::Some(part.into())),
            vec(inside.clone(), 0..4).prop_map(Shape::Fields),
            inside.clone().prop_map(|part| Shape::Fields(vec![part])),
            inside.clone().prop_map(|part| Shape::Template(part.into())),
            (inside, "[a-c]{0,2}").prop_map(|(part, text)| Shape::Label(part.into(), text)),
        ]
    })
}

/// The pieces of a template of several, each of its parts in a frame.
struct Pieces<'a>(&'a Shape, &'a str, &'a Shape);

impl KeyPart for Pieces<'_> {
    fn write(&self, key: &mut KeyWriter) {
        let Self(first, text, last) = self;
        key.part(first);
        key.literal(text);
        key.part(last);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn b03_a_template_of_any_one_part_is_that_part(part in shape()) {
        let template = || Template::new().part(&part);
        prop_assert_eq!(Key::from_part(&template()), Key::from_part(&part));
        prop_assert_eq!(Key::from_part(&(template(), "x")), Key::from_part(&(&part, "x")));
        prop_assert_eq!(Key::from_part(&Some((template(),))), Key::from_part(&(&part,)));
    }

    #[test]
    fn b03_a_template_of_several_pieces_keeps_each_part_together(
        first in shape(),
        text in "[a-c]{0,2}",
        last in shape(),
    ) {
        let template = Template::new().part(&first).literal(&text).part(&last);
        prop_assert_eq!(Key::from_part(&template), Key::from_part(&Pieces(&first, &text, &last)));
        let two = Template::new().part(&first).part(&last);
        prop_assert_eq!(Key::from_part(&two), Key::from_part(&(&first, &last)));
    }
}
