//! `hitless radar collectors`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CollectorsArgs {
    /// The Redis server on which they announce themselves: `redis://HOST:PORT`, or `rediss://` with TLS.
    #[arg(long, value_name = "URL")]
    pub from: String,

    /// Only this segment, also if nothing was found in it yet.
    #[arg(long, value_name = "NAME")]
    pub segment: Option<String>,

    /// Believe only what was sealed with this key: a file with 32 hexadecimal digits that its owner alone can read.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// The certificate authority of a rediss:// server, in PEM; those of the system if not given.
    #[arg(long, value_name = "FILE")]
    pub bus_ca: Option<PathBuf>,
}
