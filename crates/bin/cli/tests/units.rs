//! The shipped systemd units: what each may do and use, and that none gives up where another does not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Most resident memory in MB of all processes of a unit, and most tasks, as a comment in each says how that was measured.
const MEASURED: [(&str, (u64, u64)); 5] = [
    ("hitless-clock@", (24, 4)),
    ("hitless-link@", (62, 8)),
    ("hitless-monitor", (30, 7)),
    ("hitless-rack@", (57, 8)),
    ("hitless-switch@", (59, 5)),
];

/// Settings of a unit by name; those that are given several times are joined.
fn units() -> BTreeMap<String, BTreeMap<String, String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/systemd");
    let mut units = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "service") {
            continue;
        }
        let mut settings: BTreeMap<String, String> = BTreeMap::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            if line.is_empty() || line.starts_with(['#', '[']) {
                continue;
            }
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{}: {line}", path.display()));
            let known = settings.entry(name.to_owned()).or_default();
            *known = format!("{known} {value}").trim().to_owned();
        }
        units.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), settings);
    }
    assert_eq!(units.len(), 5, "{:?}", units.keys());
    units
}

/// Bytes, as `512M`.
fn bytes(text: &str) -> u64 {
    text.strip_suffix('M').and_then(|number| number.parse::<u64>().ok()).unwrap_or_else(|| panic!("{text}")) << 20
}

#[test]
fn every_unit_is_confined() {
    for (name, unit) in units() {
        for (setting, value) in [
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
            ("ProtectHome", "yes"),
            ("ProtectKernelModules", "yes"),
            ("ProtectKernelTunables", "yes"),
            ("ProtectKernelLogs", "yes"),
            ("ProtectControlGroups", "yes"),
            ("ProtectClock", "yes"),
            ("ProtectHostname", "yes"),
            ("RestrictNamespaces", "yes"),
            ("RestrictRealtime", "yes"),
            ("RestrictSUIDSGID", "yes"),
            ("LockPersonality", "yes"),
            ("MemoryDenyWriteExecute", "yes"),
            ("SystemCallArchitectures", "native"),
        ] {
            assert_eq!(unit.get(setting).map(String::as_str), Some(value), "{name}: {setting}");
        }
        assert!(!unit["CapabilityBoundingSet"].contains("SYS_"), "{name}");
        assert!(unit.contains_key("PrivateDevices") || unit["DevicePolicy"] == "closed", "{name}");
        // Nothing that a daemon makes is for everybody.
        assert!(["0027", "0077"].contains(&unit["UMask"].as_str()), "{name}: {}", unit["UMask"]);
        assert_eq!(unit["RuntimeDirectoryMode"], "0750", "{name}");
    }
}

#[test]
fn every_unit_has_a_bound_on_memory_and_tasks_well_above_what_was_measured() {
    let measured = BTreeMap::from(MEASURED);
    for (name, unit) in units() {
        let (megabytes, tasks) = measured[name.as_str()];
        assert!(bytes(&unit["MemoryMax"]) >= 8 * (megabytes << 20), "{name}: {}", unit["MemoryMax"]);
        assert!(unit["TasksMax"].parse::<u64>().unwrap() >= 4 * tasks, "{name}: {}", unit["TasksMax"]);
    }
}

#[test]
fn every_unit_restarts_for_ever_but_not_with_wrong_arguments() {
    for (name, unit) in units() {
        assert_eq!(unit["Restart"], "always", "{name}");
        assert_eq!(unit["StartLimitIntervalSec"], "0", "{name}");
        // A host that nobody looks at is worse than a log that fills slowly, and the file of a journal may be there later.
        let prevents = unit.get("RestartPreventExitStatus").map(String::as_str);
        assert_eq!(prevents, (name != "hitless-monitor").then_some("2"), "{name}");
        assert!(unit.contains_key("WatchdogSec"), "{name}");
    }
}
