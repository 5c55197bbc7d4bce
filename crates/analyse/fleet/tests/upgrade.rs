//! Partial deployment: sums over links against whole simulations, and orders that are what they say.

use std::collections::BTreeSet;

use fleet::fabric::Facebook;
use fleet::ledger::{LedgerTerms, PipeLayout};
use fleet::paths::Constraint;
use fleet::protection::ProtectionTable;
use fleet::simulate::{FleetSample, FleetSetup, Policy, simulate};
use fleet::trace::{CorruptionEvent, TraceModel};
use fleet::upgrade::{Exposure, UpgradeCurve, UpgradeOrder, capable, curve};
use fleet::{Fabric, SwitchId};
use units::{Moment, Rate, Unwatched};

struct Year {
    fabric: Fabric,
    trace: Vec<CorruptionEvent>,
    table: ProtectionTable,
    share: f64,
}

const UNTIL: Moment = Moment::from_ms(200 * 86_400_000);

impl Year {
    fn new(fabric: Fabric, share: f64) -> Self {
        // Links corrupt more often than the paper's, so that a small fabric has enough of them.
        let model = TraceModel { mttf: 1_000.0, ..TraceModel::default() };
        let trace = model.generate(&fabric, UNTIL, 3).unwrap();
        Self { fabric, trace, table: ProtectionTable::measured(), share }
    }

    fn setup<'a>(&'a self, capable: Option<&'a [bool]>) -> FleetSetup<'a> {
        FleetSetup {
            fabric: &self.fabric,
            trace: &self.trace,
            until: UNTIL,
            policy: Policy::CorrOptGuard,
            terms: LedgerTerms {
                constraint: Constraint::new(self.share).unwrap(),
                healthy_loss: 0.0,
                pipes: PipeLayout::default(),
            },
            protection: &self.table,
            capable,
        }
    }

    fn exposure(&self) -> Exposure {
        Exposure::record(&self.setup(None), &Unwatched).unwrap()
    }

    fn curve(&self, exposure: &Exposure, order: &UpgradeOrder) -> UpgradeCurve {
        let switches = order.switches(&self.fabric, exposure, 1).unwrap();
        curve(&self.fabric, exposure, &order.to_string(), &switches, 10)
    }
}

fn pods() -> Fabric {
    Fabric::facebook(&Facebook { pods: 6, tors: 12, fabrics: 4, spines: 6, rate: Rate::gbps(100) }).unwrap()
}

#[test]
fn the_sum_over_links_is_what_a_simulation_of_that_deployment_finds() {
    for (fabric, share) in [(pods(), 0.75), (Fabric::fat_tree(6, Rate::gbps(100)).unwrap(), 0.6)] {
        let year = Year::new(fabric, share);
        let exposure = year.exposure();
        for (order, upgraded) in [
            (UpgradeOrder::Random, 0.7),
            (UpgradeOrder::Pods, 0.5),
            (UpgradeOrder::Greedy, 1.0),
            (UpgradeOrder::Planes, 0.0),
        ] {
            let switches = order.switches(&year.fabric, &exposure, 1).unwrap();
            let capable = capable(&year.fabric, &switches, upgraded);
            let outcome = simulate(&year.setup(Some(&capable)), |_: &FleetSample| (), &Unwatched);
            let sum = exposure.mean_penalty(&year.fabric, &capable);
            assert!(outcome.mean_penalty > 0.0);
            assert!((sum / outcome.mean_penalty - 1.0).abs() < 1e-9, "{order}: {sum} {}", outcome.mean_penalty);
        }
    }
}

#[test]
fn every_order_upgrades_every_switch_once() {
    for fabric in
        [pods(), Fabric::fat_tree(4, Rate::gbps(100)).unwrap(), Fabric::leaf_spine(3, 4, Rate::gbps(100)).unwrap()]
    {
        let year = Year::new(fabric, 0.5);
        let exposure = year.exposure();
        let orders = UpgradeOrder::all(&year.fabric);
        let names: BTreeSet<String> = orders.iter().map(UpgradeOrder::to_string).collect();
        assert_eq!(names.len(), orders.len());
        for order in &orders {
            assert_eq!(order.to_string().parse(), Ok(order.clone()));
            let switches = order.switches(&year.fabric, &exposure, 1).unwrap();
            let distinct: BTreeSet<SwitchId> = switches.iter().copied().collect();
            assert_eq!(
                (switches.len(), distinct.len()),
                (year.fabric.switches().len(), year.fabric.switches().len()),
                "{order}"
            );
            let curve = year.curve(&exposure, order);
            assert!(curve.points.windows(2).all(|pair| pair[1].mean_penalty <= pair[0].mean_penalty), "{order}");
            assert_eq!((curve.points[0].links, curve.points[10].links), (0, year.fabric.links().len()), "{order}");
        }
    }
}

#[test]
fn pods_and_planes_are_whole_before_the_next_begins() {
    let year = Year::new(pods(), 0.75);
    let exposure = year.exposure();
    let first = |order: UpgradeOrder, count: usize| -> Vec<String> {
        let switches = order.switches(&year.fabric, &exposure, 1).unwrap();
        switches[..count].iter().map(|switch| year.fabric.switch(*switch).name.clone()).collect()
    };
    assert!(first(UpgradeOrder::Pods, 16).iter().all(|name| name.starts_with("pod0/")));
    assert!(first(UpgradeOrder::TopPods, 24).iter().all(|name| name.starts_with("plane")));
    let plane = first(UpgradeOrder::Planes, 12);
    assert!(plane.iter().all(|name| name.ends_with("/fabric0") || name.starts_with("plane0/")), "{plane:?}");
    assert!(first(UpgradeOrder::Levels(vec![2, 1, 0]), 24).iter().all(|name| name.starts_with("plane")));
    assert!(UpgradeOrder::Levels(vec![0, 1]).switches(&year.fabric, &exposure, 1).is_err());
    assert!(UpgradeOrder::Levels(vec![0, 1, 1]).switches(&year.fabric, &exposure, 1).is_err());
}

#[test]
fn which_order_pays_depends_on_which_links_have_to_stay_and_greedy_finds_out() {
    let areas = |pods, tors, spines| -> Vec<(UpgradeOrder, f64)> {
        let shape = Facebook { pods, tors, fabrics: 4, spines, rate: Rate::gbps(100) };
        let year = Year::new(Fabric::facebook(&shape).unwrap(), 0.75);
        let exposure = year.exposure();
        let area = |order: UpgradeOrder| (order.clone(), year.curve(&exposure, &order).area);
        UpgradeOrder::all(&year.fabric).into_iter().map(area).collect()
    };
    let of = |areas: &[(UpgradeOrder, f64)], wanted: UpgradeOrder| {
        areas.iter().find(|(order, _)| *order == wanted).unwrap().1
    };
    // Few spines: a link to one of them is many paths, so it is these that stay. Many: it is those of ToRs.
    let [few, many] = [areas(6, 12, 6), areas(4, 8, 48)];
    assert!(of(&few, UpgradeOrder::Planes) < of(&few, UpgradeOrder::Pods) / 1.5);
    assert!(of(&many, UpgradeOrder::Pods) < of(&many, UpgradeOrder::Planes) / 4.0);
    for areas in [few, many, areas(3, 24, 24)] {
        let best = areas.iter().map(|(_, area)| *area).fold(1.0, f64::min);
        assert!(of(&areas, UpgradeOrder::Greedy) <= best * 1.1, "{areas:?}");
    }
}

#[test]
fn spines_alone_gain_nothing() {
    let year = Year::new(pods(), 0.75);
    let exposure = year.exposure();
    let spines = year.curve(&exposure, &UpgradeOrder::Levels(vec![2, 0, 1]));
    assert_eq!(spines.points[2].links, 0);
    assert_eq!(spines.points[2].mean_penalty, spines.points[0].mean_penalty);
}

#[test]
fn an_account_that_is_called_off_is_none() {
    let year = Year::new(pods(), 0.75);
    assert_eq!(Exposure::record(&year.setup(None), &|days| days < 10), None);
}
