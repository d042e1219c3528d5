//! Where things are: the checkout, its target folder, DynamoRIO's source.
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};
use serde_json::Value;

pub struct Workspace {
    pub root: PathBuf,
    pub target: PathBuf,
    metadata: Value,
}

impl Workspace {
    pub fn find() -> Result<Self> {
        let metadata = cargo_metadata(&[])?;
        Ok(Self {
            root: path(&metadata, "workspace_root")?,
            target: path(&metadata, "target_directory")?,
            metadata,
        })
    }

    /// Where the program looks for its tracer: `exe/../lib/hither`.
    pub fn lib(&self) -> PathBuf {
        self.target.join("lib/hither")
    }

    /// Source folder and version of a dependency that is only downloaded.
    pub fn package(&self, name: &str) -> Result<(PathBuf, String)> {
        let found = self.found(name)?;
        let manifest = path(found, "manifest_path")?;
        let version = found["version"].as_str().unwrap_or("unknown").to_string();
        let folder = manifest.parent().unwrap_or(Path::new("/")).to_path_buf();
        Ok((folder, version))
    }

    /// What a package of the workspace says it is.
    pub fn description(&self, name: &str) -> Result<String> {
        let description = self.found(name)?["description"].as_str();
        let description = description.with_context(|| format!("{name} has no description"))?;
        Ok(description.to_string())
    }

    fn found(&self, name: &str) -> Result<&Value> {
        let packages = self.metadata["packages"].as_array();
        packages
            .and_then(|all| all.iter().find(|p| p["name"] == name))
            .with_context(|| {
                format!("`cargo metadata` lists no package {name}; is it in xtask/Cargo.toml?")
            })
    }
}

/// The cargo that runs us, in the checkout.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    cargo
}

/// What `cargo metadata` prints with further `arguments`.
pub fn cargo_metadata(arguments: &[&str]) -> Result<Value> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1"]);
    let out = metadata.args(arguments).output();
    let out = out.context("cannot start cargo")?;
    if !out.status.success() {
        bail!(
            "`cargo metadata` failed:\n{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    serde_json::from_slice(&out.stdout).context("`cargo metadata` printed no JSON")
}

fn path(value: &Value, key: &str) -> Result<PathBuf> {
    let text = value[key].as_str();
    Ok(text
        .with_context(|| format!("`cargo metadata` gives no {key}"))?
        .into())
}
