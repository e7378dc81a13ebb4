//! The cost of the attribute at compile time: a program with 100 annotated functions, beside the
//! same program without the attribute. It asserts nothing.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use benches::Ratios;

const FUNCTIONS: usize = 100;

/// How often each build is measured.
const ROUNDS: usize = 3;

fn main() {
    if !benches::is_measuring() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    generate(folder.path());
    let mut ratios = Ratios::new("100 functions", "without the attribute");
    for command in ["check", "build"] {
        // Builds what both depend on.
        measure(folder.path(), command, Attribute::Present);
        measure(folder.path(), command, Attribute::Absent);
        let rounds = (0..ROUNDS).map(|_| {
            let with = measure(folder.path(), command, Attribute::Present);
            (with, measure(folder.path(), command, Attribute::Absent))
        });
        ratios.add(format!("cargo {command}"), rounds.collect());
    }
    ratios.print();
}

#[derive(Clone, Copy)]
enum Attribute {
    Present,
    Absent,
}

fn measure(folder: &Path, command: &str, attribute: Attribute) -> Duration {
    fs::write(folder.join("src/main.rs"), program(attribute)).expect("the program");
    let began = Instant::now();
    let built = Command::new(env!("CARGO"))
        .args([command, "--quiet", "--target-dir"])
        .arg(folder.join("target"))
        .current_dir(folder)
        .status()
        .expect("cargo");
    assert!(built.success(), "the program does not build");
    began.elapsed()
}

fn generate(folder: &Path) {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = format!(
        r#"[package]
name = "hundred"
version = "0.0.0"
edition = "2024"

[workspace]

[profile.dev]
incremental = false

[dependencies]
idempotent-runtime.path = {:?}
serde = {{ version = "1", features = ["derive"] }}
thiserror = "2"
tokio = {{ version = "1", features = ["rt"] }}
"#,
        workspace.join("idempotent-runtime"),
    );
    fs::create_dir(folder.join("src")).expect("a folder");
    fs::write(folder.join("Cargo.toml"), manifest).expect("the manifest");
    fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file");
}

fn program(attribute: Attribute) -> String {
    let mut program = String::from(
        r#"use idempotent_runtime::Error;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Charge { order: u64, memo: String }

#[derive(Serialize, Deserialize)]
struct Receipt { id: u64, text: String }

#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
enum PayError {
    #[error(transparent)]
    Idempotency(#[from] Error),
}

"#,
    );
    for number in 0..FUNCTIONS {
        let attribute = match attribute {
            Attribute::Present => {
                "#[idempotent_runtime::idempotent(key = charge.order, ttl = \"24h\")]\n"
            }
            Attribute::Absent => "",
        };
        let _infallible = write!(
            program,
            "{attribute}async fn charge_{number}(charge: &Charge) -> Result<Receipt, PayError> {{
    tokio::task::yield_now().await;
    Ok(Receipt {{ id: charge.order + {number}, text: charge.memo.clone() }})
}}

"
        );
    }
    program.push_str(
        "async fn all(charge: &Charge) -> Result<u64, PayError> {\n    let mut sum = 0;\n",
    );
    for number in 0..FUNCTIONS {
        let _infallible = writeln!(program, "    sum += charge_{number}(charge).await?.id;");
    }
    program.push_str(
        r#"    Ok(sum)
}

fn main() {
    let charge = Charge { order: 1, memo: String::from("memo") };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    println!("{:?}", runtime.block_on(all(&charge)));
}
"#,
    );
    program
}
