"use strict";
(() => {
  const { run, steps, pictures } = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  // Every text goes in through here, as text: nothing in this file ever reads HTML.
  const el = (name, props = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(props)) {
      if (key === "class") node.className = value;
      else if (key === "text") node.textContent = value;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };
  const svg = (name, attributes = {}) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const time = (ms) => (ms >= 9950 ? `${(ms / 1000).toFixed(0)} s` : ms >= 995 ? `${(ms / 1000).toFixed(1)} s` : ms >= 9.5 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(1)} ms`);
  const total = (step) => step.times.reduce((sum, value) => sum + value, 0);
  const searched = steps.map((step) => [step.number, step.title, step.state, step.thought, step.note, step.error, step.detail, step.hit, step.reply, step.screen, ...step.before].join("\n").toLowerCase());

  let current = -1;
  let after = false;
  let shown = steps.map((_, index) => index);

  // ---- the run

  function header() {
    if (run.instruction) $("instruction").textContent = run.instruction;
    const kind = { done: "good", running: "warn", interrupted: "warn", stopped: "warn", unverified: "warn" }[run.outcome] || "bad";
    $("outcome").className = `badge ${kind}`;
    $("outcome").textContent = run.outcome.replaceAll("_", " ");
    $("message").textContent = run.message;
    const facts = [...run.facts];
    const started = new Date(run.started);
    if (!Number.isNaN(started.getTime())) facts.push(["started", started.toLocaleString([], { dateStyle: "medium", timeStyle: "short" })]);
    for (const [name, value] of facts) $("facts").append(el("div", {}, el("dt", { text: name }), el("dd", { text: value })));
    if (!facts.length) $("facts").hidden = true;
    $("problem").textContent = run.problem;
    $("problem").hidden = !run.problem;
    for (const name of ["evidence", "changes"]) {
      const lines = run[name] || [];
      $(name).hidden = !lines.length;
      $(name).querySelector("ul").append(...lines.map((text) => el("li", { text })));
    }
    const warnings = [...run.warnings];
    if (run.reduced) warnings.push(`${run.reduced} of ${pictures.length} screenshots were made smaller to keep this file small; the run's folder has them in full.`);
    $("warnings").hidden = !warnings.length;
    $("warnings").querySelector("summary").textContent = warnings.length === 1 ? "1 remark" : `${warnings.length} remarks`;
    $("warnings").querySelector("ul").append(...warnings.map((text) => el("li", { text })));
  }

  function lists() {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        entry.target.style.backgroundImage = `url("${pictures[entry.target.dataset.picture].thumb}")`;
      }
    }, { root: $("film"), rootMargin: "400px" });
    for (const [index, step] of steps.entries()) {
      const state = step.state === "done" || step.state === "said" ? "" : step.state;
      const option = el("div", { class: `step ${step.state}`, role: "option", id: `step-${index}`, "aria-selected": "false" },
        el("span", { class: "n", text: step.number }), el("span", { class: "t", text: step.title }), el("span", { class: "s", text: state || (total(step) ? time(total(step)) : "") }));
      option.addEventListener("click", () => select(index));
      $("list").append(option);
      const thumb = el("div", { class: "thumb" }, el("span", { text: step.number }));
      thumb.addEventListener("click", () => select(index));
      $("film").append(thumb);
      if (step.picture !== null) {
        thumb.dataset.picture = step.picture;
        seen.observe(thumb);
      }
    }
    if (steps.length) $("list").style.setProperty("--digits", `${String(steps.at(-1).number).length + 1}ch`);
    else $("list").append(el("div", { class: "none", role: "option", "aria-selected": "false", "aria-disabled": "true", text: "No steps" }));
  }

  function filter() {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = [];
    for (const [index, text] of searched.entries()) {
      const fits = words.every((word) => text.includes(word));
      if (fits) shown.push(index);
      $(`step-${index}`).hidden = !fits;
      $("film").children[index].hidden = !fits;
    }
    $("count").textContent = words.length ? `${shown.length} of ${steps.length} steps` : "";
    if (shown.length && !shown.includes(current)) select(shown[0]);
    else walkable();
  }

  // ---- the selected step

  function select(index, keep = false) {
    if (index < 0 || index >= steps.length) return;
    if (current >= 0) {
      $(`step-${current}`).setAttribute("aria-selected", "false");
      $("film").children[current].classList.remove("on");
    }
    if (!keep) after = false;
    current = index;
    const option = $(`step-${index}`);
    option.setAttribute("aria-selected", "true");
    $("list").setAttribute("aria-activedescendant", option.id);
    within($("list"), option, "Top", "Height");
    const thumb = $("film").children[index];
    thumb.classList.add("on");
    within($("film"), thumb, "Left", "Width");
    $("title").textContent = `${steps[index].number}. ${steps[index].title}`;
    walkable();
    picture();
    detail();
    $("detail").scrollTop = 0;
    if ($("here")) $("here").setAttribute("x", (index * 1000) / steps.length);
    try { history.replaceState(null, "", `#${index + 1}`); } catch { /* not allowed for this address */ }
  }

  // Scrolls the box itself and nothing around it: on a phone the page must stay where it is.
  function within(box, item, side, length) {
    const start = item[`offset${side}`] - box[`offset${side}`];
    const [at, room, size] = [box[`scroll${side}`], box[`client${length}`], item[`offset${length}`]];
    if (start < at + 8 || start + size > at + room - 8) box[`scroll${side}`] = start - (room - size) / 2;
  }

  function walkable() {
    const place = shown.indexOf(current);
    $("prev").disabled = place <= 0;
    $("next").disabled = place < 0 || place >= shown.length - 1;
  }

  function walk(by) {
    const place = shown.indexOf(current);
    const next = place < 0 ? 0 : Math.min(Math.max(place + by, 0), shown.length - 1);
    if (shown.length) select(shown[next]);
  }

  function picture() {
    const step = steps[current];
    const following = steps[current + 1];
    const possible = Boolean(following) && following.picture !== null;
    after = after && possible;
    $("toggle").disabled = !possible;
    $("toggle").setAttribute("aria-pressed", String(after));
    const source = after ? following.picture : step.picture;
    const words = after ? `After step ${step.number}: what step ${following.number} saw` : `Before step ${step.number}: what the model saw`;
    if (source === null) {
      $("stage").replaceChildren(el("p", { class: "gone", text: "The screenshot of this step is missing." }));
      $("caption").textContent = "";
      return;
    }
    const [width, height] = pictures[source].size;
    const image = el("img", { src: pictures[source].url, alt: `Screenshot. ${words}.`, width, height });
    $("stage").replaceChildren(image);
    if (!after && step.marks) $("stage").append(overlay(step.marks, width, height));
    $("caption").textContent = `${words}, ${width}×${height}.` + (pictures[source].reduced ? " Made smaller for this report." : "");
  }

  // Drawn in a box of the screenshot's own size, so that it scales with it.
  function overlay(marks, width, height) {
    const box = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", id: "mark" });
    const scale = Math.max(width, height) / 760;
    const draw = (name, attributes, kinds) => kinds.forEach((kind) => {
      const shape = svg(name, { class: kind, ...attributes });
      shape.setAttribute("vector-effect", "non-scaling-stroke");
      box.append(shape);
    });
    const points = marks.points.filter(Boolean).map(([x, y]) => [x * width, y * height]);
    if (!points.length) return box;
    const [x, y] = points.at(-1);
    if (marks.kind === "drag" && points.length > 1) {
      const [fx, fy] = points[0];
      const angle = Math.atan2(y - fy, x - fx);
      const head = [angle + 2.6, angle - 2.6].map((a) => `${x + 16 * scale * Math.cos(a)} ${y + 16 * scale * Math.sin(a)}`);
      draw("path", { d: `M${fx} ${fy}L${x} ${y}M${head[0]}L${x} ${y}L${head[1]}` }, ["halo", "mark"]);
      draw("circle", { cx: fx, cy: fy, r: 5 * scale }, ["dot"]);
      return box;
    }
    if (marks.kind === "scroll") {
      const [dx, dy] = marks.way;
      const reach = 34 * scale;
      const [tx, ty] = [x + dx * reach, y + dy * reach];
      const angle = Math.atan2(dy, dx);
      const head = [angle + 2.5, angle - 2.5].map((a) => `${tx + 14 * scale * Math.cos(a)} ${ty + 14 * scale * Math.sin(a)}`);
      if (dx || dy) draw("path", { d: `M${x - dx * reach} ${y - dy * reach}L${tx} ${ty}M${head[0]}L${tx} ${ty}L${head[1]}` }, ["halo", "mark"]);
      draw("circle", { cx: x, cy: y, r: 6 * scale }, ["dot"]);
      return box;
    }
    draw("circle", { cx: x, cy: y, r: 15 * scale }, ["halo ring", "mark ring"]);
    draw("circle", { cx: x, cy: y, r: 2.5 * scale }, ["dot"]);
    return box;
  }

  function part(title, ...children) {
    return el("section", {}, el("h3", { text: title }), ...children);
  }

  function folded(title, text, open = false) {
    const node = el("details", {}, el("summary", { text: title }), el("pre", { text, tabindex: "0", "aria-label": title }));
    node.open = open;
    return node;
  }

  function detail() {
    const step = steps[current];
    const parts = [];
    if (step.before.length) parts.push(part("Before this step", el("ul", { class: "none" }, ...step.before.map((text) => el("li", { text })))));
    if (step.thought) parts.push(part("Thought", el("p", { class: "words", text: step.thought })));
    parts.push(result(step));
    if (step.approval) parts.push(part("Approval", ...approval(step.approval)));
    if (step.reply) parts.push(part("Reply", el("p", { text: step.reply })));
    if (step.note) parts.push(part("Note to the model", el("p", { text: step.note })));
    parts.push(timings(step));
    const tokens = Object.entries(step.tokens).filter(([, count]) => count).map(([name, count]) => `${count.toLocaleString("en")} ${name}`);
    if (tokens.length) parts.push(part("Tokens", el("p", { text: tokens.join(", ") })));
    if (step.screen) parts.push(folded("Action on the screen", step.screen));
    if (step.instead) parts.push(folded("Changed by you to", step.instead, true));
    if (step.model) parts.push(folded(step.grid.length ? `Action as the model wrote it (grid ${step.grid.join("×")})` : "Action as the model wrote it", step.model));
    if (step.call) parts.push(folded("Call", step.call));
    for (const [index, answer] of step.answers.entries()) {
      const title = step.answers.length > 1 ? `Raw answer, attempt ${index + 1} of ${step.answers.length}` : "Raw answer";
      const node = folded(title, answer.raw, Boolean(answer.failure) || step.state === "failed");
      if (answer.failure) node.append(el("p", { class: "bad", text: answer.failure }));
      parts.push(node);
    }
    $("detail").replaceChildren(...parts);
  }

  function result(step) {
    const words = { said: "nothing to carry out", done: "carried out", "broken off": "the run ended here" }[step.state] || step.state;
    const first = el("p", {}, el("span", { class: `state ${step.state}`, text: words[0].toUpperCase() + words.slice(1) }));
    if (step.detail && step.detail !== step.title) first.append(el("span", { text: `: ${step.detail}` }));
    const lines = [el("p", { class: "words", text: step.title }), first];
    if (step.hit) lines.push(el("p", { class: "soft", text: `On: ${step.hit}` }));
    if (step.error) lines.push(el("p", { class: "bad", text: step.error }));
    if (step.changed !== null) lines.push(el("p", { class: "soft", text: step.changed ? "The screen changed." : "The screen did not change." }));
    return part("Action", ...lines);
  }

  function approval(given) {
    const lines = [el("p", { text: given.verdict + (given.by ? ` by ${given.by}` : "") + (given.milliseconds ? ` after ${time(given.milliseconds)}` : "") + (given.at === null ? "" : `, ${given.at.toFixed(1)} s into the run`) })];
    if (given.reason) lines.push(el("p", { class: "soft", text: `Asked because ${given.reason}.` }));
    if (given.always) lines.push(el("p", { class: "soft", text: `Always, for ${given.always}.` }));
    if (given.note) lines.push(el("p", { text: `“${given.note}”` }));
    return lines;
  }

  function timings(step) {
    const sum = total(step);
    if (!sum) return part("Time", el("p", { class: "soft", text: "Nothing was measured." }));
    const stack = el("div", { class: "stack", "aria-hidden": "true" });
    const rows = el("tbody");
    for (const [index, value] of step.times.entries()) {
      if (!value) continue;
      const piece = el("span", { class: `f${index}` });
      piece.style.width = `${(100 * value) / sum}%`;
      stack.append(piece);
      const name = run.stages[index] === "model" && step.ttft ? `model (first token after ${time(step.ttft)})` : run.stages[index];
      rows.append(el("tr", {}, el("th", { scope: "row" }, el("span", { class: `key f${index}` }), name), el("td", { text: time(value) })));
    }
    const began = step.at === null ? "" : `, from ${step.at.toFixed(1)} s into the run`;
    return part(`Time: ${time(sum)}${began}`, stack, el("table", {}, rows));
  }

  // ---- the whole run's time, one column a step

  function chart() {
    const most = Math.max(...steps.map(total), 0);
    $("chart").hidden = !most;
    if (!most) return;
    const wide = 1000 / steps.length;
    const gap = steps.length > 250 ? 0 : Math.min(wide * 0.25, 6); // hairlines between columns would only dim them
    const column = Math.min(wide - gap, 90);
    const box = svg("svg", { viewBox: "0 0 1000 96", preserveAspectRatio: "none", role: "img", "aria-label": `Bar chart: the longest of ${steps.length} steps took ${time(most)}` });
    box.append(svg("rect", { id: "here", class: "here", x: 0, y: 0, width: wide, height: 96 }));
    const paths = run.stages.map(() => "");
    for (const [index, step] of steps.entries()) {
      let top = 94;
      for (const [stage, value] of step.times.entries()) {
        const height = (90 * value) / most;
        if (height < 0.05) continue;
        top -= height;
        paths[stage] += `M${(index * wide + (wide - column) / 2).toFixed(2)} ${top.toFixed(2)}h${column.toFixed(2)}v${height.toFixed(2)}h-${column.toFixed(2)}z`;
      }
    }
    for (const [stage, d] of paths.entries()) {
      if (!d) continue;
      box.append(svg("path", { class: `f${stage}`, d }));
      $("legend").append(el("li", {}, el("span", { class: `key f${stage}` }), run.stages[stage]));
    }
    box.append(svg("line", { x1: 0, x2: 1000, y1: 94.5, y2: 94.5, "vector-effect": "non-scaling-stroke" }));
    box.addEventListener("click", (event) => {
      const area = box.getBoundingClientRect();
      select(Math.floor(((event.clientX - area.left) / area.width) * steps.length));
    });
    $("bars").append(box);
  }

  // ---- paper: all steps, one below the other

  function paper() {
    const kept = steps.slice(0, 200);
    $("print").replaceChildren(...kept.map((step) => {
      const shot = el("div", { class: "shot" });
      if (step.picture !== null) {
        shot.append(el("img", { src: pictures[step.picture].url, alt: "" }));
        const last = step.marks && step.marks.points.at(-1);
        if (last) {
          const at = el("div", { class: "at" });
          [at.style.left, at.style.top] = last.map((share) => `${share * 100}%`);
          shot.append(at);
        }
      }
      const words = el("div", {}, el("h2", { text: `${step.number}. ${step.title}` }));
      for (const text of [step.thought, step.error, step.approval && `${step.approval.verdict} by ${step.approval.by}`, step.reply, step.state]) {
        if (text) words.append(el("p", { text }));
      }
      return el("article", {}, shot, words);
    }));
    if (kept.length < steps.length) $("print").append(el("p", { text: `${steps.length - kept.length} more steps are not printed.` }));
  }

  // ---- light and dark

  const system = matchMedia("(prefers-color-scheme: dark)");
  let theme = "auto";
  try { theme = localStorage.getItem("mai-report-theme") || "auto"; } catch { /* no storage for this address */ }

  function paint() {
    document.documentElement.dataset.theme = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
    $("theme").textContent = `Theme: ${theme}`;
  }

  $("theme").addEventListener("click", () => {
    theme = { auto: "light", light: "dark" }[theme] || "auto";
    try { localStorage.setItem("mai-report-theme", theme); } catch { /* as above */ }
    paint();
  });
  system.addEventListener("change", paint);

  // ---- keys

  const flip = () => { if (!$("toggle").disabled) { after = !after; picture(); } };
  const keys = {
    j: () => walk(1), k: () => walk(-1), ArrowDown: () => walk(1), ArrowRight: () => walk(1), ArrowUp: () => walk(-1),
    ArrowLeft: () => walk(-1), Home: () => walk(-Infinity), End: () => walk(Infinity), b: flip,
    "/": () => $("filter").focus(), "?": () => $("help").showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || $("help").open) return;
    if (event.target === $("filter")) {
      if (event.key === "Escape") { $("filter").value = ""; filter(); }
      if (event.key === "Escape" || event.key === "Enter") { event.preventDefault(); $("list").focus(); }
      if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); keys[event.key](); }
      return;
    }
    // A text that scrolls keeps its arrows.
    if (event.target.tagName === "PRE" || (["detail", "head"].includes(event.target.id) && event.key.startsWith("Arrow"))) return;
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  $("filter").addEventListener("input", filter);
  $("prev").addEventListener("click", () => walk(-1));
  $("next").addEventListener("click", () => walk(1));
  $("toggle").addEventListener("click", flip);
  $("help-open").addEventListener("click", () => $("help").showModal());
  addEventListener("beforeprint", paper);

  // What scrolls must be reachable by keys; a focus stop that does nothing would only be in the way.
  const reachable = () => {
    const full = $("head").scrollHeight > $("head").clientHeight + 1;
    if (full) $("head").tabIndex = 0;
    else $("head").removeAttribute("tabindex");
  };
  addEventListener("resize", reachable);
  $("warnings").addEventListener("toggle", reachable);

  paint();
  header();
  reachable();
  lists();
  chart();
  if (steps.length) select(Math.min(Math.max((Number.parseInt(location.hash.slice(1), 10) || 1) - 1, 0), steps.length - 1));
  else {
    $("stage").replaceChildren(el("p", { class: "gone", text: "There is nothing to show: no step was recorded." }));
    $("detail").append(el("p", { class: "soft", text: "No step." }));
    for (const id of ["prev", "next", "toggle", "filter"]) $(id).disabled = true;
  }
})();
