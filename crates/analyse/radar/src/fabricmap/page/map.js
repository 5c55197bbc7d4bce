"use strict";
const map = JSON.parse(document.getElementById("data").textContent);
const slider = document.getElementById("time");
const when = document.getElementById("when");
// Lanes of findings are drawn over all others.
const firstBox = document.querySelector(".switch");

// A cell keeps what it has for the whole run.
function fill(id, text) {
  const cell = document.getElementById(id);
  if (!cell) return;
  cell.dataset.whole ??= cell.textContent;
  cell.textContent = text ?? cell.dataset.whole;
}

function show(step) {
  const whole = step === null;
  const links = whole ? map.totals : map.steps[step].links;
  const most = Math.max(1, ...links.flat().map((way) => way[0]));
  const open = map.findings
    .map((finding, number) => ({ ...finding, number }))
    .filter((finding) => whole || (finding.since < map.steps[step].until && finding.until > map.steps[step].since));
  const marks = (id) => open.filter((finding) => finding.at.includes(id)).map((finding) => `[${finding.number + 1}]`).join("");
  links.forEach((ways, link) => ways.forEach(([packets], from) => {
    const lane = document.getElementById(`l${link}w${from}`);
    if (!lane) return;
    const mark = marks(lane.id);
    lane.classList.toggle("found", mark !== "");
    if (mark) firstBox.before(lane);
    lane.querySelector("line").style.strokeWidth = packets ? 1 + 5 * Math.sqrt(packets / most) : 0.6;
    lane.querySelector("text").textContent = mark;
  }));
  links.forEach((ways, link) => {
    ways.forEach(([packets, lost], from) => {
      fill(`p${link}w${from}`, whole ? null : packets.toLocaleString("en"));
      fill(`q${link}w${from}`, whole ? null : lost.toLocaleString("en"));
    });
    const here = open.filter((finding) => finding.at.some((id) => id.startsWith(`l${link}w`)));
    fill(`m${link}`, here.map((finding) => `[${finding.number + 1}] ${finding.kind}`).join(", "));
  });
  document.querySelectorAll(".switch").forEach((box) => {
    const mark = marks(box.id);
    box.classList.toggle("found", mark !== "");
    box.querySelector(".marks").textContent = mark;
  });
  map.findings.forEach((_, number) => {
    const entry = document.getElementById(`f${number}`);
    if (entry) entry.classList.toggle("past", !open.some((finding) => finding.number === number));
  });
  if (whole) {
    when.textContent = "the whole run";
  } else {
    const { since, until } = map.steps[step];
    const clock = new Date(map.begin + since).toISOString().slice(11, 23);
    when.textContent = `${clock} UTC, ${(since / 1000).toFixed(1)} to ${(until / 1000).toFixed(1)} s`;
  }
}

if (slider) {
  slider.max = map.steps.length;
  slider.disabled = map.steps.length === 0;
  // The first place is the whole run, so that nothing is hidden before somebody moves it.
  slider.addEventListener("input", () => show(slider.value === "0" ? null : slider.value - 1));
  show(null);
}
