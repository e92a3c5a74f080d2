"use strict";
const report = (() => {
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
  const searchable = () => steps.map((step) => [step.number, step.title, step.state, step.thought, step.note, step.error, step.detail, step.hit, step.reply, step.screen, ...step.before].join("\n").toLowerCase());
  let searched = searchable();

  // A step that a person looks for first: it failed, was not done, or was asked about.
  const trouble = (step) => !["done", "said", "dry run"].includes(step.state) || Boolean(step.approval) || (step.actions || []).some((one) => one.approval);

  let current = -1;
  let shown = steps.map((_, index) => index);

  const stage = makeStage({ $, el, svg, pictures });
  const timeline = makeTimeline({ $, el, svg, run, steps, pictures, time, total, select, trouble });

  // ---- the run

  function header() {
    if (run.instruction) {
      $("instruction").textContent = run.instruction;
      if (!$("instruction").nextElementSibling) $("instruction").after(copier("the instruction", run.instruction));
    }
    const kind = { done: "good", running: "warn", interrupted: "warn", stopped: "warn", unverified: "warn" }[run.outcome] || "bad";
    $("outcome").className = `badge ${kind}`;
    $("outcome").textContent = run.outcome.replaceAll("_", " ");
    $("message").textContent = run.message;
    const facts = [...run.facts];
    const started = new Date(run.started);
    if (!Number.isNaN(started.getTime())) facts.push(["started", started.toLocaleString([], { dateStyle: "medium", timeStyle: "short" })]);
    $("facts").replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }))));
    if (!facts.length) $("facts").hidden = true;
    $("problem").textContent = run.problem;
    $("problem").hidden = !run.problem;
    if (run.still) { // independent pictures, such as an evaluation's misses
      $("show-before").parentElement.hidden = true;
      $("filter").placeholder = "Filter  /";
    }
    for (const name of ["evidence", "changes", "undone"]) {
      const lines = run[name] || [];
      $(name).hidden = !lines.length;
      $(name).querySelector("ul").replaceChildren(...lines.map((text) => el("li", { text })));
    }
    const warnings = [...run.warnings];
    if (run.reduced) warnings.push(`${run.reduced} of ${pictures.length} screenshots were made smaller to keep this file small; ${run.still ? "the benchmark" : "the run's folder"} has them in full.`);
    $("warnings").hidden = !warnings.length;
    $("warnings").querySelector("summary").textContent = warnings.length === 1 ? "1 remark" : `${warnings.length} remarks`;
    $("warnings").querySelector("ul").replaceChildren(...warnings.map((text) => el("li", { text })));
  }

  function lists() {
    $("list").replaceChildren();
    for (const [index, step] of steps.entries()) {
      const state = step.state === "done" || step.state === "said" ? "" : step.state;
      const option = el("div", { class: `step ${step.state}`, role: "option", id: `step-${index}`, "aria-selected": "false" },
        el("span", { class: "n", text: step.number }), el("span", { class: "t", text: step.title }), el("span", { class: "s", text: state || (total(step) ? time(total(step)) : "") }));
      option.addEventListener("click", () => select(index));
      $("list").append(option);
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
    }
    $("count").textContent = words.length ? `${shown.length} of ${steps.length} steps` : "";
    if (shown.length && !shown.includes(current)) select(shown[0]);
    else walkable();
  }

  // ---- the selected step

  function select(index, plays = false) {
    if (index < 0 || index >= steps.length) return;
    if (!plays) timeline.stop();
    mark(index);
    stage.show(steps[index], run.still ? undefined : steps[index + 1]);
    detail();
    $("detail").scrollTop = 0;
    try { history.replaceState(null, "", `#${index + 1}`); } catch { /* not allowed for this address */ }
  }

  function mark(index) {
    if (current >= 0) $(`step-${current}`).setAttribute("aria-selected", "false");
    current = index;
    const option = $(`step-${index}`);
    option.setAttribute("aria-selected", "true");
    $("list").setAttribute("aria-activedescendant", option.id);
    within($("list"), option, "Top", "Height");
    $("title").textContent = `${steps[index].number}. ${steps[index].title}`;
    walkable();
    timeline.chosen(index);
  }

  // Draws the selected step anew, with its folds, its place and the focus as they were.
  function again(index) {
    const box = $("detail"), top = box.scrollTop;
    const title = (node) => node.querySelector("summary").textContent;
    const open = [...box.querySelectorAll("details[open]")].map(title);
    const focused = box.contains(document.activeElement) ? document.activeElement.ariaLabel ?? document.activeElement.textContent : null;
    select(index);
    for (const node of box.querySelectorAll("details")) node.open ||= open.includes(title(node));
    box.scrollTop = top;
    const same = [...box.querySelectorAll("button, pre, summary")].find((node) => focused !== null && (node.ariaLabel ?? node.textContent) === focused);
    if (same) same.focus({ preventScroll: true });
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

  function part(title, ...children) {
    return el("section", {}, el("h3", { text: title }), ...children);
  }

  // A text that can be unfolded and copied; the button stands beside the fold, not in it, for keyboard users.
  function folded(title, text, open = false) {
    const node = el("details", {}, el("summary", { text: title }), el("pre", { text, tabindex: "0", "aria-label": title }));
    node.open = open;
    return el("div", { class: "fold" }, node, copier(title, text));
  }

  // ---- copying

  function copier(label, text) {
    const button = el("button", { type: "button", class: "copy", "aria-label": `Copy: ${label}`, title: `Copy: ${label}`, text: "Copy" });
    button.addEventListener("click", () => copy(button, text));
    return button;
  }

  async function copy(button, text) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch { // not allowed here: the old way, which needs a selection
      const field = el("textarea", { class: "hidden", "aria-hidden": "true" });
      field.value = text;
      button.after(field);
      field.select();
      done = document.execCommand("copy");
      field.remove();
      button.focus();
    }
    $("said").textContent = done ? "Copied." : "It could not be copied.";
    button.textContent = done ? "Copied" : "Failed";
    setTimeout(() => { button.textContent = "Copy"; $("said").textContent = ""; }, 1500);
  }

  function detail() {
    const step = steps[current];
    const parts = [];
    if (step.before.length) parts.push(part("Before this step", el("ul", { class: "none" }, ...step.before.map((text) => el("li", { text })))));
    if (step.thought) parts.push(part("Thought", el("p", { class: "words", text: step.thought })));
    parts.push(result(step));
    const glass = stage.glass(step);
    if (glass) parts.push(part("Where", glass));
    if (step.reply) parts.push(part("Reply", el("p", { text: step.reply })));
    if (step.found) parts.push(part("How it was decided", el("p", { text: step.found.join("\n") })));
    if (step.note) parts.push(part("Note to the model", el("p", { text: step.note })));
    parts.push(timings(step));
    const tokens = Object.entries(step.tokens).filter(([, count]) => count).map(([name, count]) => `${count.toLocaleString("en")} ${name}`);
    if (tokens.length) parts.push(part("Tokens", el("p", { text: tokens.join(", ") })));
    if (step.screen) parts.push(folded("Proposed action on the screen", step.screen));
    if (step.instead) parts.push(folded("Changed by you to", step.instead, true));
    if (step.model) parts.push(folded(step.grid.length ? `Action as the model wrote it (grid ${step.grid.join("×")})` : "Action as the model wrote it", step.model));
    if (step.call) parts.push(folded("Call", step.call));
    for (const [index, answer] of step.answers.entries()) {
      const which = step.answers.length < 2 ? "" : run.still ? [", first look", ", closer look"][index] : `, attempt ${index + 1} of ${step.answers.length}`;
      const title = `Raw answer${which}`;
      const node = folded(title, answer.raw, Boolean(answer.failure) || step.state === "failed");
      if (answer.failure) node.firstChild.append(el("p", { class: "bad", text: answer.failure }));
      parts.push(node);
    }
    $("detail").replaceChildren(...parts);
  }

  function result(step) {
    const lines = step.actions.flatMap(action);
    if (!lines.length) lines.push(el("p", { class: "words", text: step.title }));
    if (step.error && !step.actions.some((one) => one.error === step.error)) lines.push(el("p", { class: "bad", text: step.error }));
    if (step.changed !== null) lines.push(el("p", { class: "soft", text: step.changed ? "The screen changed." : "The screen did not change." }));
    if (step.facts) lines.push(el("table", {}, el("tbody", {}, ...step.facts.map(([name, value]) => el("tr", {}, el("th", { scope: "row", text: name }), el("td", { text: value }))))));
    return part(run.still ? "Sample" : "Action", ...lines);
  }

  // The proposed action has its reasons for asking, and the person's change has its own.
  function action(one) {
    const asked = one.approval;
    const lines = [el("p", { class: "words", text: (one.changed ? "The model proposed: " : "") + one.proposed })];
    if (asked) {
      if (asked.reason) lines.push(el("p", { class: "soft", text: `Asked because ${asked.reason}.` }));
      const when = (asked.milliseconds ? ` after ${time(asked.milliseconds)}` : "") + (asked.at === null ? "" : `, ${asked.at.toFixed(1)} s into the run`);
      lines.push(el("p", { text: capital(asked.answer) + when }));
      if (asked.always) lines.push(el("p", { class: "soft", text: `Allowed for the rest of the run, too: ${asked.always}.` }));
    }
    if (one.changed) {
      lines.push(el("p", { class: "words", text: `Changed to: ${one.changed}` }));
      if (asked.changed_reason) lines.push(el("p", { class: "soft", text: `Had the model proposed this, it would have been asked about too, because ${asked.changed_reason}.` }));
    }
    const words = { said: "nothing to carry out", done: "carried out", "broken off": "the run ended here" }[one.fate] || one.words;
    const last = el("p", {}, el("span", { class: `state ${one.fate}`, text: capital(words) }));
    if (one.detail && one.detail !== one.changed && one.detail !== one.proposed) last.append(el("span", { text: `: ${one.detail}` }));
    lines.push(last);
    if (one.hit) lines.push(el("p", { class: "soft", text: `On: ${one.hit}` }));
    if (one.error) lines.push(el("p", { class: "bad", text: one.error }));
    return lines;
  }

  function capital(words) { return words && words[0].toUpperCase() + words.slice(1); }

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
      for (const text of [step.thought, step.error, ...step.actions.map((one) => one.approval && one.approval.answer), step.reply, step.state]) {
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

  const keys = {
    j: () => walk(1), k: () => walk(-1), ArrowDown: () => walk(1), ArrowRight: () => walk(1), ArrowUp: () => walk(-1),
    ArrowLeft: () => walk(-1), Home: () => walk(-Infinity), End: () => walk(Infinity), b: () => stage.flip(),
    e: () => select(steps.findIndex((step, index) => index > current && trouble(step))),
    s: () => stage.toggle("slider"), d: () => stage.toggle("difference"), z: () => stage.zoom(), p: () => timeline.play(),
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
    if (event.target.matches("pre, input") || (["detail", "head", "stage"].includes(event.target.id) && event.key.startsWith("Arrow"))) return;
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  $("filter").addEventListener("input", filter);
  $("prev").addEventListener("click", () => walk(-1));
  $("next").addEventListener("click", () => walk(1));
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

  // Updates a live page. If the newest step was selected, the newest step stays selected.
  function update(next) {
    const newest = current >= steps.length - 1, place = current;
    const told = (index) => JSON.stringify([steps[index], steps[index + 1]]);
    const before = told(place);
    for (const name of Object.keys(run)) delete run[name];
    Object.assign(run, next.run);
    steps.splice(0, Infinity, ...next.steps);
    pictures.splice(0, Infinity, ...next.pictures);
    searched = searchable();
    current = -1;
    header();
    reachable();
    lists();
    timeline.draw();
    if (!steps.length) return;
    for (const button of document.querySelectorAll("#main .bar button, #views button, #filter")) button.disabled = false;
    const to = newest ? steps.length - 1 : Math.min(place, steps.length - 1);
    if (to !== place) select(to);
    else if (told(to) !== before) again(to);
    else mark(to); // unchanged: do not redraw it under the reader
    filter();
  }

  paint();
  header();
  reachable();
  lists();
  timeline.draw();
  if (steps.length) select(Math.min(Math.max((Number.parseInt(location.hash.slice(1), 10) || 1) - 1, 0), steps.length - 1));
  else {
    $("stage").replaceChildren(el("p", { class: "gone", text: "There is nothing to show: no step was recorded." }));
    $("detail").append(el("p", { class: "soft", text: "No step." }));
    for (const button of document.querySelectorAll("#main .bar button, #views button, #filter")) button.disabled = true;
  }
  return { $, el, update };
})();
