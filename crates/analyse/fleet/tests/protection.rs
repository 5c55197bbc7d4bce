//! Effect of protection on a link: the table is one, agrees with the paper, and with what `sim link` says today.

use faults::{FaultSchedule, LossModel};
use fleet::protection::{ProtectionRow, ProtectionTable, TARGET, copies};
use sim::link::{HardwareProfile, LinkOutcome, LinkSimConfig, LinkSimMode, run};
use units::{Prob, Rate, Unwatched};

fn measure(loss: f64, frames: u64) -> LinkOutcome {
    let config = LinkSimConfig {
        rate: Rate::gbps(100),
        profile: HardwareProfile::Tofino,
        mode: LinkSimMode::Ordered,
        forward: FaultSchedule::always(LossModel::PerFrame(Prob::literal(loss))),
        frames,
        ..LinkSimConfig::default()
    };
    run(&config, &Unwatched).unwrap()
}

#[test]
fn the_table_covers_the_losses_of_a_fleet_and_gets_slower_with_each() {
    let table = ProtectionTable::measured();
    let rows = table.rows();
    assert!(rows[0].loss <= 1e-8 && rows[rows.len() - 1].loss >= 0.1);
    assert!(rows.windows(2).all(|pair| pair[1].loss / pair[0].loss < 2.5), "no wide gap between rows");
    assert!(rows.windows(2).all(|pair| pair[1].speed <= pair[0].speed));
    assert!(rows.iter().all(|row| row.copies == copies(row.loss)));
}

#[test]
fn a_protected_link_keeps_the_speed_that_figure_8_shows() {
    let speed = |loss| ProtectionTable::measured().of(loss).speed;
    assert!((0.90..=0.94).contains(&speed(1e-3)), "the paper has 92 %: {}", speed(1e-3));
    assert!(speed(1e-5) > 0.98, "close to 100 % in the paper: {}", speed(1e-5));
    assert!(speed(1e-4) > 0.97, "close to 100 % in the paper: {}", speed(1e-4));
}

#[test]
fn speeds_between_rows_lie_on_a_line_and_a_dead_link_has_none() {
    let table = ProtectionTable::measured();
    let [.., lower, upper, dead] = table.rows() else { panic!("three rows at least") };
    let middle = table.of((lower.loss + upper.loss) / 2.0).speed;
    assert!((middle - (lower.speed + upper.speed) / 2.0).abs() < 1e-12);
    assert_eq!((dead.loss, table.of(1.0).speed), (1.0, 0.0));
    assert_eq!(table.of(1e-12).speed, table.rows()[0].speed);
    for row in table.rows() {
        assert!((table.of(row.loss).speed - row.speed).abs() < 1e-12, "{row:?}");
    }
}

#[test]
fn copies_bring_the_loss_down_to_the_target() {
    let table = ProtectionTable::measured();
    for (loss, copies, effective) in [(1e-5, 1, 1e-10), (1e-4, 1, 1e-8), (1e-3, 2, 1e-9), (1e-2, 3, 1e-8)] {
        let protection = table.of(loss);
        assert_eq!(protection.copies, copies);
        assert!((protection.loss / effective - 1.0).abs() < 1e-9, "{loss}: {}", protection.loss);
    }
    assert_eq!(table.of(1e-9).copies, 1, "a protected link has at least one");
    for hundredth in 200..800 {
        let loss = 10f64.powf(-f64::from(hundredth) / 100.0);
        assert!(table.of(loss).loss <= TARGET.get() * 1.000_001, "{loss}");
    }
}

#[test]
fn what_was_lost_for_good_is_what_equation_2_says_up_to_a_loss_of_one_percent() {
    let rows = ProtectionTable::measured().rows().to_vec();
    let usual = || rows.iter().filter(|row| row.loss <= 1e-2);
    assert!(usual().all(ProtectionRow::agrees), "{rows:?}");
    assert!(usual().map(|row| row.lost).sum::<u64>() >= 100, "enough to say so");
}

#[test]
fn beyond_that_retransmissions_come_too_late_and_what_was_counted_holds() {
    let table = ProtectionTable::measured();
    let row = table.rows().iter().find(|row| row.loss == 1e-1).unwrap();
    assert!(!row.agrees());
    let counted = row.lost as f64 / row.frames as f64;
    assert!((table.of(1e-1).loss / counted - 1.0).abs() < 1e-9);
    let losses = [2.2e-2, 3e-2, 4.6e-2, 7e-2, 0.1, 0.2, 0.5, 0.9, 1.0].map(|loss| table.of(loss).loss);
    assert!(losses.is_sorted(), "{losses:?}");
    assert!((losses[8] - 1.0).abs() < 1e-9, "a dead link stays dead");
}

#[test]
fn sim_link_still_measures_what_the_table_says() {
    // On a row, and between two.
    for (loss, frames) in [(1e-3, 5_000_000), (3e-4, 10_000_000)] {
        let speed = measure(loss, frames).effective_speed.unwrap();
        let table = ProtectionTable::measured().of(loss).speed;
        assert!((speed - table).abs() < 0.005, "{loss}: {speed} now, {table} in the table");
    }
}

#[test]
fn texts_that_are_no_table_are_refused() {
    let said = |text: &str| ProtectionTable::parse(text).unwrap_err().to_string();
    let row = |loss: &str, speed: &str| {
        format!("[[row]]\nloss = {loss}\nspeed = {speed}\ncopies = 1\nframes = 1\nlost = 0\n")
    };
    assert!(ProtectionTable::parse(&row("1e-3", "0.9")).is_ok());
    assert_eq!(said("row = []"), "expected at least one [[row]]");
    assert_eq!(said(&row("0.0", "0.9")), "loss 0, speed 0.9: expected shares below 1");
    assert_eq!(said(&row("1e-3", "1.5")), "loss 0.001, speed 1.5: expected shares below 1");
    assert!(said(&row("1e-3", "nan")).ends_with("expected shares below 1"));
    let more = row("1e-3", "0.9").replace("lost = 0", "lost = 2");
    assert_eq!(said(&more), "loss 0.001: expected some frames, and at most as many lost");
    let falling = row("1e-3", "0.9") + &row("1e-3", "0.8");
    assert_eq!(said(&falling), "loss 0.001: expected more than in the row before");
    assert!(said("[[row]]\nlos = 1e-3\n").starts_with("line 2: unknown field `los`"));
}
