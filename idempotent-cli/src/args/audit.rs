//! The words of `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{RecordArgs, Signature};

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Finds the first place where the trail is not what it was. Exits with 1 if there is one.
    Verify(VerifyArgs),
    /// Writes the sealed entries as JSON Lines, and a manifest beside them.
    Export(ExportArgs),
    /// Prints the chain as it is now, in one line, for a place that nobody here can change.
    Anchor,
    /// Seals the entries that are open.
    Seal,
    /// Keeps entries from every pruning until they are released.
    Hold(HoldArgs),
    /// Ends a hold.
    Release(ReleaseArgs),
    /// Lists the holds that stand.
    Holds,
    /// Takes the fields of old entries. The chain still verifies.
    Prune(PruneArgs),
    /// Proposes the end of a record that was refused without a second person.
    Propose(ProposeArgs),
    /// Approves a proposal, as another person.
    Approve(ApproveArgs),
    /// Lists the proposals of the last 24 hours.
    Proposals,
}

/// A part of the trail.
#[derive(Args, Clone, Debug)]
pub(crate) struct PartArgs {
    /// Begins at this batch.
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<i64>,
    /// Ends with this batch.
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<i64>,
    /// Begins at what was sealed at this time, such as `2026-11-30` or `2026-11-30T07:39:33Z`.
    #[arg(long, value_name = "TIME")]
    pub(crate) sealed_from: Option<String>,
    /// Ends with what was sealed by this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) sealed_to: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// A file with anchors, one a line, as `audit anchor` printed them.
    #[arg(long, value_name = "FILE")]
    pub(crate) anchors: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// The file of the entries, which is not there yet. The manifest goes beside it, into a file
    /// whose name ends with `.manifest`.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Clone, Debug)]
#[group(id = "held", required = true, multiple = false, args = ["record", "operation", "written_from"])]
pub(crate) struct HoldArgs {
    /// The entries of this record, by its whole id. The record itself may be gone.
    #[arg(long, value_name = "ID")]
    pub(crate) record: Option<String>,
    /// The entries of all records of this operation.
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: Option<String>,
    /// The entries that were written from this time on.
    #[arg(long, value_name = "TIME", requires = "written_to")]
    pub(crate) written_from: Option<String>,
    /// The end of that time.
    #[arg(long, value_name = "TIME", requires = "written_from")]
    pub(crate) written_to: Option<String>,
    #[command(flatten)]
    pub(crate) sign: Signature,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ReleaseArgs {
    /// The number of the hold, as `audit holds` shows it.
    #[arg(value_name = "N")]
    pub(crate) number: i64,
    #[command(flatten)]
    pub(crate) sign: Signature,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PruneArgs {
    /// Keeps the entries of so long.
    #[arg(long, value_name = "AGE", default_value = "400d")]
    pub(crate) keep: String,
    /// Prunes without asking.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ProposeArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// The proposal, as the refusal of the act shows it.
    #[arg(long, value_name = "TEXT", required = true)]
    pub(crate) proposal: String,
    #[command(flatten)]
    pub(crate) sign: Signature,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ApproveArgs {
    /// The number of the proposal, as `audit proposals` shows it.
    #[arg(value_name = "N")]
    pub(crate) number: i64,
    #[command(flatten)]
    pub(crate) sign: Signature,
}
