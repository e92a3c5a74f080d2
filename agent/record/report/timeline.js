"use strict";
// The run over its time: what the screen showed, what every step spent its time on, and playback.
const makeTimeline = ({ $, el, svg, run, steps, pictures, time, total, select, trouble }) => {
  // Longest and shortest time that a step is shown while it plays, in milliseconds.
  const LONGEST = 2600, SHORTEST = 450;
  const SPEEDS = [1, 2, 4];
  // Most steps with a tick at their start: more ticks would hide the durations.
  const MOST_TICKS = 120;
  const film = $("film"), track = $("track"), peek = $("peek");

  // Start and end of each step in seconds, as recorded; without a recorded time, after the step before.
  let spans = [], end = 0.001, origin = 0, length = 0.001;
  function measure() {
    spans = [];
    for (const step of steps) {
      const before = spans.length ? spans.at(-1)[1] : 0;
      const start = step.at === null || step.at < 0 ? before : step.at;
      spans.push([start, start + total(step) / 1000]);
    }
    end = Math.max(...spans.map((span) => span[1]), 0.001);
    // What comes before the first step (a sandbox, a server that starts) has no picture, and no room here.
    origin = steps.length ? Math.min(spans[0][0], end - 0.001) : 0;
    length = end - origin;
  }
  const share = (seconds) => Math.min(1, Math.max(0, (seconds - origin) / length));

  const latest = (seconds) => {
    let found = 0;
    for (const [index, [start]] of spans.entries()) if (start <= seconds) found = index;
    return found;
  };

  const long = (seconds) => (seconds < 120 ? time(seconds * 1000) : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`);

  // Draws the run anew: a live page calls it after every step.
  function draw() {
    current = Math.min(current, steps.length - 1); // a new run has fewer steps
    measure();
    $("legend").replaceChildren();
    $("time").hidden = !steps.length || Boolean(run.still);
    if ($("time").hidden) return;
    const box = svg("svg", { viewBox: "0 0 1000 24", preserveAspectRatio: "none", "aria-hidden": "true" });
    box.append(svg("rect", { id: "here", class: "here", x: 0, y: 0, width: 1, height: 24 }));
    const paths = run.stages.map(() => "");
    for (const [index, step] of steps.entries()) {
      let left = share(spans[index][0]) * 1000;
      for (const [stage, value] of step.times.entries()) {
        const width = value / length;
        if (width > 0.02) paths[stage] += `M${left.toFixed(2)} 5h${width.toFixed(2)}v14h-${width.toFixed(2)}z`;
        left += width;
      }
    }
    for (const [stage, d] of paths.entries()) {
      if (!d) continue;
      box.append(svg("path", { class: `f${stage}`, d }));
      $("legend").append(el("li", {}, el("span", { class: `key f${stage}` }), run.stages[stage]));
    }
    const at = (index) => (share(spans[index][0]) * 1000).toFixed(2);
    const line = (kind, d) => box.append(svg("path", { class: kind, d, "vector-effect": "non-scaling-stroke" }));
    for (const [index, step] of steps.entries()) {
      if (steps.length <= MOST_TICKS) line("tick", `M${at(index)} 2v20`);
      if (trouble(step)) line(step.state === "failed" ? "flag bad" : "flag", `M${at(index)} 0v24`);
    }
    track.replaceChildren(box);
    $("ends").replaceChildren(el("span", { text: long(origin) }), el("span", { text: long(end) }));
    frames();
    resized.observe(film);
  }

  const resized = new ResizeObserver(() => frames());
  // As many frames as fit; each shows the screen at its time.
  function frames() {
    if ($("time").hidden) return; // a run that has just begun
    const room = Math.max(1, Math.floor((film.clientWidth + 6) / 110));
    const count = Math.min(room, 40);
    if (film.children.length !== count) film.replaceChildren(...Array.from({ length: count }, () => el("div", { class: "thumb" }, el("span"))));
    mark();
  }

  let current = -1;
  function mark() {
    const count = film.children.length;
    const chosen = current < 0 ? -1 : Math.min(count - 1, Math.floor(share(spans[current][0]) * count));
    for (const [place, frame] of [...film.children].entries()) {
      const index = place === chosen ? current : latest(origin + ((place + 0.5) / count) * length);
      frame.classList.toggle("on", place === chosen);
      frame.firstChild.textContent = steps[index].number;
      frame.style.backgroundImage = picture(index);
    }
    const here = $("here");
    if (!here || current < 0) return;
    const [start, stop] = spans[current].map(share);
    here.setAttribute("x", start * 1000);
    here.setAttribute("width", Math.max(3, (stop - start) * 1000));
  }

  const picture = (index) => (steps[index].picture === null ? "none" : `url("${pictures[steps[index].picture].thumb}")`);

  function chosen(index) {
    current = index;
    mark();
  }

  // ---- under the pointer

  const under = (event, part) => {
    const area = part.getBoundingClientRect();
    return latest(origin + ((event.clientX - area.left) / area.width) * length);
  };
  for (const part of [film, track]) {
    part.addEventListener("click", (event) => select(under(event, part)));
    part.addEventListener("pointerleave", () => { peek.hidden = true; });
    part.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "mouse") return;
      const index = under(event, part), step = steps[index];
      peek.hidden = false;
      const image = el("div", { class: "thumb" });
      image.style.backgroundImage = picture(index);
      peek.replaceChildren(image, el("p", { text: `${step.number}. ${step.title}` }), el("p", { class: "soft", text: `at ${long(spans[index][0])}, ${time(total(step))}` }));
      const area = $("time").getBoundingClientRect();
      peek.style.left = `${Math.min(Math.max(event.clientX - area.left - 110, 4), area.width - 228)}px`;
    });
  }

  // ---- playback

  let timer = 0, speed = 0;
  const plays = () => timer !== 0;

  function stop() {
    clearTimeout(timer);
    timer = 0;
    told();
  }

  function told() {
    $("play").setAttribute("aria-pressed", String(plays()));
    $("play").textContent = plays() ? "Pause" : "Play";
    $("speed").textContent = `${SPEEDS[speed]}×`;
  }

  function next() {
    if (current >= steps.length - 1) { stop(); return; }
    select(current + 1, true);
    timer = setTimeout(next, wait());
  }

  const wait = () => Math.min(LONGEST, Math.max(SHORTEST, total(steps[Math.max(0, current)]))) / SPEEDS[speed];

  function play() {
    if (plays()) { stop(); return; }
    if (current >= steps.length - 1) select(0, true);
    timer = setTimeout(next, wait());
    told();
  }

  $("play").addEventListener("click", play);
  $("speed").addEventListener("click", () => { speed = (speed + 1) % SPEEDS.length; told(); });
  told();

  return { draw, chosen, play, stop };
};
