//! The words of the command line.

mod audit;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::audit::{
    ApproveArgs, AuditCommand, ExportArgs, HoldArgs, PartArgs, ProposeArgs, PruneArgs, ReleaseArgs,
    VerifyArgs,
};

/// The exit codes, as the help has them.
const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing found, 4 refused, or the record has moved.";

/// Looks at the records of calls, and settles what no call can decide.
#[derive(Debug, Parser)]
#[command(name = "idempotent", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The same within a program that has a handle.
#[derive(Debug, Parser)]
#[command(version, about = "Looks at the records of calls, and settles what no call can decide.", after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Embedded {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    /// The URL of the store: `sqlite:file.db`, `postgres://…`, `mysql://…`, `redis://…`, or
    /// `redis+cluster://host:port,host:port`. `@file` reads it from a file, where a password
    /// may stand.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "IDEMPOTENT_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<String>,
    /// How the names of its tables, or its keys in Redis, begin.
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
    /// How long the application keeps what has expired, as its `audit_retention` says.
    #[arg(long, global = true, value_name = "AGE")]
    pub(crate) audit_retention: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct OutputArgs {
    /// Writes JSON, one object a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists records. `--attention` lists those that no call can decide.
    List(ListArgs),
    /// Shows one record, with its outcome.
    Show(RecordArgs),
    /// Tells the story of one record, and what can be done.
    Explain(RecordArgs),
    /// Lists the steps of one call.
    Steps(RecordArgs),
    /// Says how a call ended that no call can decide.
    Settle(SettleArgs),
    /// Has a parked record tried again by the next call.
    Resume(ActArgs),
    /// Has the next call undo the steps of a call, which then failed with this error.
    Undo(UndoArgs),
    /// Gives up the outcome of a finished call: the next call runs once more.
    Invalidate(ActArgs),
    /// Deletes records that have expired.
    Purge,
    /// Looks the store over, and says for each finding what to do.
    Doctor,
    /// Makes the tables of the store, or brings them up to date.
    Migrate(TablesArgs),
    /// Prints the statements that make the tables.
    Ddl(TablesArgs),
    /// Looks at streams of numbered calls, and settles the number at which one stops.
    #[command(subcommand)]
    Sequence(SequenceCommand),
    /// Looks at an outbox, and has it go on.
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Verifies the audit of the records, exports and prunes it, and has people approve.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Prints the completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the page of the manual, for `man`.
    Man {
        /// Writes a page for each command into this folder instead.
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only what no call can decide: uncertain, parked or undoing.
    #[arg(long)]
    pub(crate) attention: bool,
    /// Only records that run past the end of their lease.
    #[arg(long)]
    pub(crate) abandoned: bool,
    /// Only records of this operation, the newest first where the store has an index.
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: Option<String>,
    /// Only records of this scope, as the list shows it, without the quotes.
    #[arg(long, value_name = "TEXT")]
    pub(crate) scope: Option<String>,
    /// Only records of this key, likewise.
    #[arg(long, value_name = "TEXT")]
    pub(crate) key: Option<String>,
    /// Only records in this state.
    #[arg(long)]
    pub(crate) state: Option<StateArg>,
    /// Only records that were created so long ago, such as `2h` or `30m`.
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Lists so many at most; on Redis some more, since the server hands them out by handfuls.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Goes on where an earlier list ended.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

/// The states, as `--state` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    Running,
    Done,
    Released,
    Uncertain,
    Parked,
    Undoing,
}

/// Names one record.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordArgs {
    /// The id, or its first digits: eight at least.
    #[arg(value_name = "ID", required_unless_present = "operation", conflicts_with_all = ["operation", "scope", "key", "key_bytes"])]
    pub(crate) id: Option<String>,
    /// The operation, in place of an id.
    #[arg(long, value_name = "NAME", requires = "named_key")]
    pub(crate) operation: Option<String>,
    /// The scope of the call, if it has one.
    #[arg(long, value_name = "TEXT", requires = "operation")]
    pub(crate) scope: Option<String>,
    /// The key of the call. Say it once for each part.
    #[arg(long, value_name = "TEXT", requires = "operation", group = "named_key")]
    pub(crate) key: Vec<String>,
    /// A key of bytes, in hexadecimal digits.
    #[arg(long, value_name = "HEX", requires = "operation", group = "named_key")]
    pub(crate) key_bytes: Option<String>,
}

/// A change of one record.
#[derive(Args, Clone, Debug)]
pub(crate) struct ActArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) sign: SignArgs,
}

/// The reason and the person, which every change needs.
#[derive(Args, Clone, Debug)]
pub(crate) struct Signature {
    /// Why, for those who look later. The store keeps it.
    #[arg(long, value_name = "TEXT", required = true)]
    pub(crate) reason: String,
    /// Who acts: `user@host` unless it is said. Nothing proves it.
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Acts without asking.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// The same of a change to one record.
#[derive(Args, Clone, Debug)]
pub(crate) struct SignArgs {
    #[command(flatten)]
    pub(crate) signature: Signature,
    /// Acts only if the record still has this version, as `show` prints it.
    #[arg(long, value_name = "VERSION")]
    pub(crate) at_version: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[group(id = "how", required = true, multiple = false, args = ["value", "error", "done"])]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// It happened, with this value, in JSON, or in a file: `@file`. It answers every duplicate.
    #[arg(long, value_name = "JSON")]
    pub(crate) value: Option<String>,
    /// It failed for good, with this error, in JSON or `@file`. It answers every duplicate.
    #[arg(long, value_name = "JSON")]
    pub(crate) error: Option<String>,
    /// It happened, and its value is not known: duplicates are refused.
    #[arg(long)]
    pub(crate) done: bool,
    /// The schema version of the value, as the function says it by `version`.
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) sign: SignArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// The error that answers every duplicate afterwards, in JSON or `@file`.
    #[arg(long, value_name = "JSON", required = true)]
    pub(crate) error: String,
    /// The schema version of the error, as the function says it by `version`.
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) sign: SignArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TablesArgs {
    /// Those of the outbox, too.
    #[arg(long)]
    pub(crate) outbox: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SequenceCommand {
    /// Shows where a stream stands, and what can be done.
    Show(RecordArgs),
    /// Uses up the number at which a stream stops: it goes on with the next one.
    Skip(SkipArgs),
    /// Says how the number ended at which a stream stops.
    Settle(SettleNumberArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SkipArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// The number, as `sequence show` shows it.
    #[arg(long, value_name = "N")]
    pub(crate) number: u64,
    /// The first number of the stream, as the function says it: for a number that never comes.
    #[arg(long, value_name = "N")]
    pub(crate) first: Option<u64>,
    #[command(flatten)]
    pub(crate) sign: SignArgs,
}

#[derive(Args, Clone, Debug)]
#[group(id = "number_how", required = true, multiple = false, args = ["value", "error", "done", "not_done"])]
pub(crate) struct SettleNumberArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// The number, as `sequence show` shows it.
    #[arg(long, value_name = "N")]
    pub(crate) number: u64,
    /// It happened, with this value, in JSON or `@file`. It answers a copy.
    #[arg(long, value_name = "JSON")]
    pub(crate) value: Option<String>,
    /// It failed for good, with this error, in JSON or `@file`. The stream goes on all the same.
    #[arg(long, value_name = "JSON")]
    pub(crate) error: Option<String>,
    /// It happened, and its value is not known.
    #[arg(long)]
    pub(crate) done: bool,
    /// It did not happen: it runs when it comes again.
    #[arg(long)]
    pub(crate) not_done: bool,
    #[command(flatten)]
    pub(crate) sign: SignArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// Counts what waits, topic by topic.
    Topics,
    /// Lists keys that are parked at a refused message.
    Parked(ParkedArgs),
    /// Lists messages that were set aside.
    Rejected(RejectedArgs),
    /// Has a parked key go on with its oldest message, or all keys of a topic or a reason.
    Resume(ResumeKeysArgs),
    /// Sends a message again that was set aside.
    Resend(ResendArgs),
    /// Sets the oldest message of a parked key aside, or deletes one that was set aside.
    Discard(DiscardArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ParkedArgs {
    /// Only keys whose oldest message is of this topic.
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    /// Only keys whose reason has this text in it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason_has: Option<String>,
    /// Lists so many at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Goes on behind this key.
    #[arg(long, value_name = "KEY")]
    pub(crate) after: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct RejectedArgs {
    /// Only messages of this topic.
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    /// Only the message with this id.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Lists so many at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ResumeKeysArgs {
    /// The key.
    #[arg(required_unless_present_any = ["topic", "reason_has"], conflicts_with_all = ["topic", "reason_has"])]
    pub(crate) key: Option<String>,
    /// All keys whose oldest message is of this topic.
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    /// All keys whose reason has this text in it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason_has: Option<String>,
    #[command(flatten)]
    pub(crate) sign: Signature,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ResendArgs {
    /// The id of the message.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) sign: Signature,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct DiscardArgs {
    /// The parked key.
    #[arg(
        long,
        value_name = "KEY",
        required_unless_present = "rejected",
        requires = "message"
    )]
    pub(crate) key: Option<String>,
    /// The id of its oldest message, as `outbox parked` shows it.
    #[arg(long, value_name = "ID", requires = "key")]
    pub(crate) message: Option<String>,
    /// The id of a message that was set aside.
    #[arg(long, value_name = "ID", conflicts_with = "key")]
    pub(crate) rejected: Option<String>,
    #[command(flatten)]
    pub(crate) sign: Signature,
}
