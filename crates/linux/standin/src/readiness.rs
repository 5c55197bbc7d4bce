//! An interface that a daemon needs: there and ready, or waited for.

use std::time::Duration;

use daemon::{DaemonEnd, service};
use linux::net::InterfaceInfo;

use crate::find::{InterfaceState, find};
use crate::names::release_name;

/// Time between two looks at an interface that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The interface, if it can be used now.
pub fn check_interface(interface: &str) -> Result<InterfaceInfo, DaemonEnd> {
    match find(interface)? {
        InterfaceState::Ready(found) => Ok(found),
        InterfaceState::Absent(why) => Err(DaemonEnd::Arguments(why)),
        InterfaceState::Down(why) | InterfaceState::Unsuitable(why) => Err(DaemonEnd::Trouble(why)),
    }
}

/// Waits until an interface can be used. `go_on` hears now and then what is wrong with it; if it says no, so is the answer.
pub fn wait_until_ready(
    interface: &str,
    tell: &mut dyn FnMut(&str),
    mut go_on: impl FnMut(&str) -> bool,
) -> Result<bool, DaemonEnd> {
    let mut told = String::new();
    loop {
        let found = match find(interface)? {
            // Somebody may be about to make it.
            InterfaceState::Absent(why) => match release_name(interface) {
                Ok(()) => InterfaceState::Absent(why),
                Err(trouble) => InterfaceState::Absent(trouble.0),
            },
            found => found,
        };
        match found {
            InterfaceState::Ready(_) => return Ok(true),
            InterfaceState::Absent(why) | InterfaceState::Down(why) if told != why => {
                let text = format!("{why}; waiting for it");
                // Units that are ordered after this service need not wait for the interface.
                service::report_ready(&text);
                tell(&text);
                told = why;
            }
            InterfaceState::Absent(_) | InterfaceState::Down(_) => {}
            InterfaceState::Unsuitable(why) => return Err(DaemonEnd::Trouble(why)),
        }
        if !go_on(&told) {
            return Ok(false);
        }
        service::report_alive();
        std::thread::sleep(LOOK_EVERY);
    }
}
