//! Ways to change an input at random: as bytes, as a text of words and lines, as a capture of records.

use super::FuzzRandom;

/// Numbers at which sums and quotients may overflow.
const EDGES: [u64; 6] = [0, 1, u64::MAX, 1 << 63, (1 << 56) - 1, 127];
const EDGE_BYTES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
/// Edge numbers as words, and words that are not numbers.
const EDGE_WORDS: [&str; 20] = [
    "0",
    "1",
    "-1",
    "0.5",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-308",
    "-0.0",
    "NaN",
    "inf",
    "\"\"",
    "true",
    "é",
    "\0",
];
/// A classic capture's header, and that of each of its records.
const CAPTURE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// One of several inputs with bits, bytes and numbers changed, of up to `longest` bytes.
pub fn changed_bytes(random: &mut FuzzRandom, samples: &[Vec<u8>], longest: usize) -> Vec<u8> {
    let mut bytes = random.one_of(samples).clone();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.below(256) as u8),
            4 => {
                let edge = random.one_of(&EDGES).to_le_bytes();
                bytes.iter_mut().skip(at / 4 * 4).zip(edge).for_each(|(byte, edge)| *byte = edge);
            }
            _ => {
                let other = random.one_of(samples);
                bytes.extend_from_slice(&other[random.below(other.len())..]);
            }
        }
        bytes.truncate(longest);
    }
    bytes
}

/// One of several texts with words and lines exchanged, doubled and left out; now and then with a byte that is no text.
pub fn changed_text(random: &mut FuzzRandom, samples: &[&str]) -> Vec<u8> {
    let mut lines: Vec<String> = random.one_of(samples).lines().map(str::to_owned).collect();
    for _ in 0..=random.below(4) {
        let (at, to) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(10) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(to, lines[at].clone()),
            2 => lines.swap(at, to),
            3 => lines.insert(at, line_of(random, samples)),
            4 => lines[at] = changed_characters(random, &lines[at]),
            _ => lines[at] = changed_word(random, &lines[at], samples),
        }
    }
    let mut bytes = lines.join("\n").into_bytes();
    if random.below(20) == 0 {
        let at = random.below(bytes.len());
        bytes.splice(at..at, [*random.one_of(&EDGE_BYTES)]);
    }
    if random.below(40) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

fn line_of(random: &mut FuzzRandom, samples: &[&str]) -> String {
    let lines: Vec<&str> = random.one_of(samples).lines().collect();
    lines.get(random.below(lines.len())).copied().unwrap_or_default().to_owned()
}

fn changed_characters(random: &mut FuzzRandom, line: &str) -> String {
    let mut characters: Vec<char> = line.chars().collect();
    let at = random.below(characters.len());
    if characters.is_empty() || random.below(2) == 0 {
        characters.insert(at, char::from(32 + random.below(95) as u8));
    } else {
        characters.remove(at);
    }
    characters.into_iter().collect()
}

/// A word is what letters, digits and what is written in numbers and names make.
fn words(line: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    line.split_inclusive(|c| !is_part(c))
        .flat_map(|piece| match piece.char_indices().next_back() {
            Some((end, last)) if !is_part(last) => vec![&piece[..end], &piece[end..]],
            _ => vec![piece],
        })
        .filter(|word| !word.is_empty())
        .collect()
}

fn changed_word(random: &mut FuzzRandom, line: &str, samples: &[&str]) -> String {
    let mut words: Vec<String> = words(line).into_iter().map(str::to_owned).collect();
    let at = random.below(words.len());
    let Some(word) = words.get_mut(at) else { return random.one_of(&EDGE_WORDS).to_string() };
    match random.below(6) {
        0 => word.clear(),
        1 => *word = word.repeat(2),
        2 => {
            let other = line_of(random, samples);
            let others = self::words(&other);
            *word = others.get(random.below(others.len())).copied().unwrap_or_default().to_owned();
        }
        _ => *word = random.one_of(&EDGE_WORDS).to_string(),
    }
    words.concat()
}

/// Records of a classic capture: each with its header.
pub fn capture_records(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut at, mut records) = (CAPTURE_HEADER, Vec::new());
    while let Some(head) = bytes.get(at..at + RECORD_HEADER) {
        let kept = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let end = (at + RECORD_HEADER + kept).min(bytes.len());
        records.push(bytes[at..end].to_vec());
        at = end;
    }
    records
}

/// A classic capture of at least one record with bytes, times and records changed; the lengths of records stay.
pub fn changed_capture(random: &mut FuzzRandom, bytes: &[u8]) -> Vec<u8> {
    let mut records = capture_records(bytes);
    for _ in 0..=random.below(4) {
        let count = records.len();
        let one = random.below(count);
        match random.below(6) {
            // Several receive queues deliver packets like this.
            0 if one > 0 => {
                let (before, behind) = records.split_at_mut(one);
                before[one - 1][..8].swap_with_slice(&mut behind[0][..8]);
            }
            1 => records.swap(one, (one * 7 + 3) % count),
            2 => records[one][random.below(8)] = *random.one_of(&EDGE_BYTES),
            3 => {
                let copy = records[one].clone();
                records.insert(random.below(count), copy);
            }
            _ => {
                let len = records[one].len();
                let at = RECORD_HEADER + random.below(len.saturating_sub(RECORD_HEADER));
                if at < len {
                    let any = random.below(256) as u8;
                    records[one][at] = if random.below(2) == 0 { *random.one_of(&EDGE_BYTES) } else { any };
                }
            }
        }
    }
    [bytes[..CAPTURE_HEADER].to_vec(), records.concat()].concat()
}
