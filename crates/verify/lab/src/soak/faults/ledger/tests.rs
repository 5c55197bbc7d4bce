use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// One datagram each millisecond; those in `lost` do not arrive, the others a millisecond later.
fn journal(count: u64, lost: impl Fn(u64) -> bool) -> WitnessJournal {
    let sent = (0..count).map(|number| SentDatagram { at: ms(number), refused: false }).collect();
    let arrived = (0..count).filter(|number| !lost(*number));
    let arrived = arrived.map(|number| ReceivedDatagram { number, at: ms(number + 1) }).collect();
    WitnessJournal { sent, arrived, end: ms(count), ..WitnessJournal::default() }
}

fn clean(count: u64) -> WitnessJournal {
    journal(count, |_| false)
}

fn episode(from: u64, allowed: &[(u64, u64)]) -> Episode {
    let allowed = allowed.iter().map(|(from, to)| TimeInterval { from: ms(*from), to: ms(*to) }).collect();
    Episode { from: ms(from), allowed, ..Episode::default() }
}

fn adds_up(totals: &DatagramTotals) -> bool {
    totals.sent == totals.delivered + totals.given_up + totals.refused + totals.dropped + totals.unaccounted
}

#[test]
fn a_quiet_run_is_clean() {
    let (settled, totals) = settle(&[episode(0, &[])], &[clean(1_000), clean(500)]);
    assert_eq!((totals.sent, totals.delivered), (1_500, 1_500));
    assert!(totals.is_clean() && adds_up(&totals));
    assert_eq!((settled[0].lost, settled[0].silence), (0, ms(1)));
}

#[test]
fn what_is_lost_while_nobody_serves_is_dropped_and_what_is_lost_at_another_time_is_unaccounted_for() {
    let episodes = [episode(0, &[]), episode(400, &[(500, 600)])];
    let lost = |number| (510..560).contains(&number) || number == 700 || number == 3;
    let (settled, totals) = settle(&episodes, &[journal(1_000, lost), clean(1_000)]);
    assert_eq!((settled[0].lost, settled[0].unaccounted), (1, 1));
    assert_eq!((settled[1].lost, settled[1].allowed, settled[1].unaccounted), (51, 50, 1));
    assert_eq!((totals.dropped, totals.unaccounted), (50, 2));
    assert!(adds_up(&totals) && !totals.is_clean());
}

#[test]
fn counters_explain_first_what_nothing_else_does() {
    let counted = AccountCounts { given_up: 2, refused: 1, dropped: 4 };
    let episodes = [Episode { counted: [counted, AccountCounts::default()], ..episode(0, &[(500, 599)]) }];
    let lost = |number| (500..600).contains(&number) || (700..705).contains(&number);
    let (settled, totals) = settle(&episodes, &[journal(1_000, lost), clean(10)]);
    assert_eq!((settled[0].lost, settled[0].counted, settled[0].unaccounted), (105, counted, 0));
    assert_eq!((totals.given_up, totals.refused, totals.dropped), (2, 1, 102));
    assert!(adds_up(&totals) && totals.is_clean());
}

#[test]
fn counters_of_one_direction_do_not_explain_the_other() {
    let counted = AccountCounts { given_up: 10, ..AccountCounts::default() };
    let episodes = [Episode { counted: [counted, AccountCounts::default()], ..episode(0, &[]) }];
    let (_, totals) = settle(&episodes, &[clean(100), journal(100, |number| number == 50)]);
    assert_eq!((totals.given_up, totals.unaccounted), (0, 1));
}

#[test]
fn counters_that_rose_more_than_was_lost_explain_no_more_than_that() {
    let counted = AccountCounts { given_up: 1, refused: 50, dropped: 7 };
    let episodes = [Episode { counted: [counted; 2], ..episode(0, &[]) }];
    let (settled, totals) = settle(&episodes, &[journal(100, |number| number < 3), clean(100)]);
    assert_eq!(settled[0].counted, AccountCounts { given_up: 1, refused: 2, dropped: 0 });
    assert!(adds_up(&totals) && totals.is_clean());
}

#[test]
fn a_restart_may_cost_a_window_in_each_direction_and_no_more() {
    let episodes = [Episode { restarts: 1, ..episode(0, &[]) }];
    let lost = |number| number < WINDOW;
    let (_, totals) = settle(&episodes, &[journal(3_000, lost), journal(3_000, lost)]);
    assert_eq!((totals.dropped, totals.unaccounted), (2 * WINDOW, 0));
    let (_, totals) = settle(&episodes, &[journal(3_000, |number| number <= WINDOW), clean(3_000)]);
    assert_eq!((totals.dropped, totals.unaccounted), (WINDOW, 1));
    assert!(adds_up(&totals));
}

#[test]
fn a_send_that_the_kernel_refuses_is_refused() {
    let mut refused = journal(100, |number| number >= 90);
    refused.sent[90..].iter_mut().for_each(|sent| sent.refused = true);
    let (settled, totals) = settle(&[episode(0, &[])], &[refused, clean(100)]);
    assert_eq!((settled[0].lost, settled[0].counted.refused, totals.refused), (10, 10, 10));
    assert!(adds_up(&totals) && totals.is_clean());
}

#[test]
fn what_the_witness_itself_overran_is_dropped() {
    let overran = WitnessJournal { overrun: 2, ..journal(100, |number| number > 97) };
    let (_, totals) = settle(&[episode(0, &[])], &[overran, clean(100)]);
    assert_eq!((totals.dropped, totals.unaccounted), (2, 0));
    let overran = WitnessJournal { overrun: 1, ..journal(100, |number| number > 97) };
    let (_, totals) = settle(&[episode(0, &[])], &[overran, clean(100)]);
    assert_eq!((totals.dropped, totals.unaccounted), (1, 1));
}

#[test]
fn copies_and_swaps_are_found_where_they_arrive_and_have_no_excuse() {
    let mut odd = clean(1_000);
    odd.arrived.swap(700, 701);
    odd.arrived.insert(300, ReceivedDatagram { number: 7, at: ms(300) });
    odd.arrived.push(ReceivedDatagram { number: 5_000, at: ms(1_000) });
    let episodes = [episode(0, &[(0, 1_000)]), episode(500, &[(500, 1_000)])];
    let (settled, totals) = settle(&episodes, &[odd, clean(1)]);
    assert_eq!((settled[0].duplicated, settled[0].reordered), (1, 0));
    assert_eq!((settled[1].duplicated, settled[1].reordered), (0, 1));
    assert_eq!((totals.duplicated, totals.reordered, totals.corrupted, totals.unaccounted), (1, 1, 1, 0));
    assert!(!totals.is_clean());
}

#[test]
fn a_silence_is_the_worse_of_both_directions_and_lasts_to_the_end() {
    let episodes = [episode(0, &[]), episode(400, &[(0, 9_999)]), episode(900, &[(0, 9_999)])];
    let lost = |number| (500..600).contains(&number);
    let (settled, _) = settle(&episodes, &[journal(1_000, lost), journal(1_000, |number| number >= 950)]);
    assert_eq!((settled[0].silence, settled[1].silence, settled[2].silence), (ms(1), ms(101), ms(50)));
}

#[test]
fn counters_are_those_of_the_end_that_would_count_it() {
    let counters = |list: &[(&str, u64)]| list.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let before: [EndCounters; 2] = [counters(&[("given_up", 1), ("queue_dropped", 5)]), EndCounters::new()];
    let after: [EndCounters; 2] = [
        counters(&[("given_up", 4), ("queue_dropped", 7), (HOST_TX_DROPPED, 9), ("rx_ok", 1_000)]),
        counters(&[("given_up", 10), ("host_refused", 2), ("no_buffer", 1)]),
    ];
    let from_left = AccountCounts::between(&before, &after, 0);
    assert_eq!(from_left, AccountCounts { given_up: 10, refused: 2, dropped: 2 + 9 + 1 });
    assert_eq!(AccountCounts::between(&before, &after, 1), AccountCounts { given_up: 3, refused: 0, dropped: 1 });
    assert_eq!(
        risen(&before[0], &after[0]),
        counters(&[("given_up", 3), ("queue_dropped", 2), (HOST_TX_DROPPED, 9), ("rx_ok", 1_000)])
    );
}

#[test]
fn an_interval_has_a_margin_on_either_side() {
    let interval = TimeInterval { from: ms(50), to: ms(60) }.widened();
    assert!(interval.contains(ms(0)) && interval.contains(ms(160)) && !interval.contains(ms(161)));
}

#[test]
fn what_is_lost_at_the_boundary_of_two_episodes_may_be_counted_in_either() {
    let counted = AccountCounts { dropped: 2, ..AccountCounts::default() };
    let later = Episode { counted: [counted, AccountCounts::default()], ..episode(500, &[]) };
    let episodes = [episode(0, &[]), later, episode(900, &[])];
    let (settled, totals) = settle(&episodes, &[journal(1_500, |number| [450, 950].contains(&number)), clean(10)]);
    assert_eq!((settled[0].counted.dropped, settled[2].counted.dropped, totals.unaccounted), (1, 1, 0));
    assert!(adds_up(&totals));
    let (_, totals) = settle(&episodes, &[journal(1_500, |number| [300, 1_200].contains(&number)), clean(10)]);
    assert_eq!((totals.dropped, totals.unaccounted), (0, 2));
    let (_, totals) = settle(&episodes, &[journal(1_500, |number| (450..455).contains(&number)), clean(10)]);
    assert_eq!((totals.dropped, totals.unaccounted), (2, 3));
}
