//! The golden file of Redis: the names and digests of the scripts, and the names of keys.

use expect_test::expect_file;

use super::super::{
    prefix::{KeyPrefix, PrimaryName},
    scripts::{Scripts, Text},
};
use crate::{framing::Hex, identity::RecordId, sha256::sha256, store::sql::tests::golden::Golden};

#[test]
fn golden_scripts_and_keys_have_the_same_names() {
    let mut golden = Golden::default();
    let Scripts {
        load,
        swap,
        mark,
        purge,
        put,
        forget,
        load_steps,
        list_steps,
        write_step,
        attention,
        settled,
    } = &Scripts::new(false);
    let scripts: [(&str, &Text); 11] = [
        ("load", load),
        ("swap", swap),
        ("mark", mark),
        ("purge", purge),
        ("put", put),
        ("forget", forget),
        ("load_steps", load_steps),
        ("list_steps", list_steps),
        ("write_step", write_step),
        ("attention", attention),
        ("settled", settled),
    ];
    for (name, script) in scripts {
        let (digest, repeats) = (&script.digest, script.repeats);
        let sha256 = sha256(&mut script.code.clone().into_bytes());
        let text = format!(
            "sha1 {digest}\nsha256 {}\nrepeats {repeats:?}",
            Hex(&sha256)
        );
        golden.add(name, &text);
    }
    let (id, name) = (RecordId::from_bytes([0xa7; 32]), PrimaryName::new("ledger"));
    for prefix in [
        KeyPrefix::default(),
        KeyPrefix::new("golden:").expect("one"),
    ] {
        golden.add(&format!("key of {prefix}"), &prefix.key(&id));
        let copy = prefix.outcome_key(name.as_ref().expect("a name"), &id);
        golden.add(&format!("key of a copy of {prefix}"), &copy);
        for in_cluster in [false, true] {
            let name = format!("set of {prefix}, in a cluster: {in_cluster}");
            golden.add(&name, &prefix.set_key(&id, in_cluster));
        }
        golden.add(&format!("pattern of {prefix}"), &prefix.pattern());
        golden.add(&format!("channel of {prefix}"), &prefix.channel());
    }
    golden.is(expect_file!["golden/scripts.txt"]);
}
