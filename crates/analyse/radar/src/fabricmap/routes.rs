//! The ports by which packets should leave a switch, by the prefix of their destination.
//!
//! ```text
//!   switch,prefix,ports
//!   leaf1,10.0.2.0/24,eth1 eth2
//! ```
//!
//! The longest prefix decides. A destination that no line has is not judged at that switch.

use std::net::IpAddr;

use super::ports::FabricPorts;

#[derive(Clone, Debug, Default)]
pub struct PortRoutes {
    /// Routes of each switch, the longest prefixes first.
    routes: Vec<Vec<PortRoute>>,
}

#[derive(Clone, Debug)]
struct PortRoute {
    network: u128,
    is_v6: bool,
    length: u8,
    ports: Vec<String>,
}

fn bits(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, false),
        IpAddr::V6(address) => (address.into(), true),
    }
}

fn mask(length: u8) -> u128 {
    if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length)) }
}

impl PortRoutes {
    /// Reads a file; the error has the line.
    pub fn parse(fabric: &FabricPorts, text: &str) -> Result<Self, String> {
        let mut routes = Self { routes: vec![Vec::new(); fabric.switches().len()] };
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        const HEAD: &str = "switch,prefix,ports";
        match lines.next() {
            Some((_, HEAD)) => {}
            Some((number, _)) => return Err(format!("{number}: expected the header {HEAD}")),
            None => return Err(format!("1: expected the header {HEAD}")),
        }
        for (number, line) in lines {
            routes.add(fabric, line).map_err(|why| format!("{number}: {why}"))?;
        }
        routes.routes.iter_mut().for_each(|routes| routes.sort_by_key(|route| std::cmp::Reverse(route.length)));
        Ok(routes)
    }

    fn add(&mut self, fabric: &FabricPorts, line: &str) -> Result<(), String> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [switch, prefix, ports] = cells[..] else { return Err("expected switch,prefix,ports".to_owned()) };
        let number = fabric.switch(switch).ok_or_else(|| format!("the topology has no switch {switch:?}"))?;
        let wrong = || format!("{prefix:?}: expected a prefix such as 10.0.2.0/24");
        let (address, length) = prefix.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let length: u8 = length.parse().map_err(|_| wrong())?;
        if length > if address.is_ipv6() { 128 } else { 32 } {
            return Err(wrong());
        }
        let ports: Vec<String> = ports.split_whitespace().map(str::to_owned).collect();
        if ports.is_empty() {
            return Err("expected at least one port".to_owned());
        }
        let (network, is_v6) = bits(address);
        if network & !mask(length) != 0 {
            return Err(format!("{prefix:?}: bits are set behind its length"));
        }
        self.routes[number].push(PortRoute { network, is_v6, length, ports });
        Ok(())
    }

    /// Ports for a destination; `None` if no line has it.
    pub(super) fn ports(&self, switch: usize, destination: IpAddr) -> Option<&[String]> {
        let (address, is_v6) = bits(destination);
        let has = |route: &&PortRoute| route.is_v6 == is_v6 && address & mask(route.length) == route.network;
        self.routes[switch].iter().find(has).map(|route| route.ports.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricmap::stories::leaf_spine;

    #[test]
    fn the_longest_prefix_decides() {
        let fabric = leaf_spine();
        let text = "# by hand\nswitch,prefix,ports\nleaf1,10.0.0.0/8,up1\nleaf1,10.0.2.0/24,up1 up2\nleaf1,::/0,up2\n";
        let routes = PortRoutes::parse(&fabric, text).unwrap();
        let ports =
            |switch, destination: &str| routes.ports(switch, destination.parse().unwrap()).map(|ports| ports.join(" "));
        assert_eq!(ports(0, "10.0.2.7").as_deref(), Some("up1 up2"));
        assert_eq!(ports(0, "10.0.3.7").as_deref(), Some("up1"));
        assert_eq!(ports(0, "2001:db8::1").as_deref(), Some("up2"));
        assert_eq!((ports(0, "192.0.2.1"), ports(1, "10.0.2.7")), (None, None));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused_with_the_line() {
        let fabric = leaf_spine();
        for (text, why) in [
            ("", "1: expected the header"),
            ("leaf1,10.0.0.0/8,up1", "1: expected the header"),
            ("switch,prefix,ports\nleaf9,10.0.0.0/8,up1", r#"2: the topology has no switch "leaf9""#),
            ("switch,prefix,ports\nleaf1,10.0.0.0,up1", "2: \"10.0.0.0\": expected a prefix"),
            ("switch,prefix,ports\nleaf1,10.0.0.0/33,up1", "expected a prefix"),
            ("switch,prefix,ports\nleaf1,10.0.0.1/8,up1", "bits are set behind"),
            ("switch,prefix,ports\nleaf1,10.0.0.0/8,", "at least one port"),
            ("switch,prefix,ports\nleaf1,10.0.0.0/8", "expected switch,prefix,ports"),
        ] {
            let refused = PortRoutes::parse(&fabric, text).unwrap_err();
            assert!(refused.contains(why), "{text:?}: {refused}");
        }
    }
}
