// The live part of the page: what waits for the person, and their decisions. All texts go in as text.
(() => {
  const { $, el, update } = report;
  let { live } = JSON.parse($("data").textContent);
  const watch = live.watch, decides = live.decides;
  let shown = "", fetching = false, again = false, read = false;
  // The line under the question takes another instruction or, after Change, the edited action.
  let changing = false;

  async function send(path, body) {
    try {
      const signal = AbortSignal.timeout(10000);
      const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
      if (!answer.ok) $("told-now").textContent = answer.status === 409 ? "That is not possible any more." : await answer.text();
      return answer.ok;
    } catch {
      lost();
      return false;
    }
  }

  // A question is shown whole before it can be allowed: its text must have been in sight to its end.
  function readable() {
    const text = $("ask-text");
    if (text.hidden || text.scrollTop + text.clientHeight >= text.scrollHeight - 4) read = true;
    const edited = changing && $("ask-note").value !== live.question.edit;
    for (const name of ["allow", "always"]) {
      const button = document.querySelector(`[data-answer=${name}]`);
      button.disabled = !decides || !read || edited;
      button.title = !decides ? "" : edited ? "Press Change it first: that shows what it will be" : read ? "" : "Scroll to the end of the text first";
    }
  }

  function question() {
    const asked = live.question;
    $("ask").hidden = !asked;
    if (!asked) { shown = ""; return; }
    if (asked.id === shown) return;
    shown = asked.id;
    const approval = asked.kind === "approval";
    $("ask-what").textContent = approval ? `Allow it to ${asked.what}?` : asked.what;
    $("ask-text").hidden = !asked.text;
    $("ask-text").textContent = asked.text || "";
    $("ask-why").replaceChildren(...[...(asked.facts || []), ...(asked.reasons || []).map((one) => `Asked because ${one}.`)].map((text) => el("li", { text })));
    $("ask-note").value = "";
    changing = read = false;
    $("ask-label").textContent = approval ? "What to do instead (goes with Refuse)" : "Your reply";
    for (const button of document.querySelectorAll("[data-answer]")) {
      const name = button.dataset.answer;
      const unfit = name === "reply" || (name === "always" && !asked.scope) || (name === "change" && asked.edit === null);
      button.hidden = approval ? unfit : name !== "reply";
      button.disabled = !decides || name === "allow" || name === "always";
      if (name === "always") button.textContent = `Allow, and also ${asked.scope}`;
    }
    readable();
    $("ask").scrollIntoView({ block: "nearest" });
  }

  function decide(answer) {
    const note = $("ask-note");
    if (answer !== "change" || changing) {
      send("/decide", { question: shown, answer, text: changing && answer !== "change" ? "" : note.value });
      return;
    }
    changing = true;
    note.value = live.question.edit;
    $("ask-label").textContent = "As it shall be (goes with Change it)";
    note.focus();
  }

  function draw() {
    $("state").textContent = live.over ? "ENDED" : live.state;
    $("state").className = `badge ${{ RUNNING: "good", "NO RUN": "" }[live.state] ?? "warn"}`;
    $("told-now").textContent = live.said;
    document.title = live.title; // it tells the agent that this window is ours
    for (const button of document.querySelectorAll("[data-does]")) button.disabled = !decides || !live.running || live.over;
    $("pause").hidden = live.held !== "";
    $("resume").hidden = live.held === "";
    $("watchers").hidden = !watch;
    $("say").hidden = !decides || live.over;
    $("say-send").textContent = live.running ? "Tell it" : "Do this";
    $("say-text").placeholder = live.running ? "A message to the model, for its next step" : "What shall it do?";
    question();
  }

  async function refresh() {
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      do {
        again = false;
        const answer = await fetch("/data");
        if (!answer.ok) throw new Error(String(answer.status));
        const data = await answer.json();
        live = { ...data.live, watch };
        $("lost").hidden = true;
        update(data);
        draw();
      } while (again);
    } catch {
      lost();
    } finally {
      fetching = false;
    }
  }

  function lost() {
    $("lost").textContent = "There is no connection to mai-agent. The run goes on without this page, and waits where it asks.";
    $("lost").hidden = false;
    $("ask").hidden = true;
    shown = "";
  }

  for (const button of document.querySelectorAll("[data-answer]")) {
    button.addEventListener("click", () => decide(button.dataset.answer));
  }
  for (const button of document.querySelectorAll("[data-does]")) {
    button.addEventListener("click", () => send("/control", { what: button.dataset.does, text: "" }));
  }
  $("ask-reply").addEventListener("submit", (event) => {
    event.preventDefault();
    if (live.question && live.question.kind === "reply") decide("reply");
    else if (changing) decide("change");
  });
  $("say").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = $("say-text").value.trim();
    if (text && await send("/control", { what: live.running ? "tell" : "start", text })) $("say-text").value = "";
  });
  $("ask-text").addEventListener("scroll", readable);
  $("ask-note").addEventListener("input", readable);
  $("watchers").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(new URL(watch, location.href).href);
      $("told-now").textContent = "The link is copied.";
    } catch {
      $("told-now").textContent = new URL(watch, location.href).href;
    }
  });
  // A browser has few connections to one host, so one tab listens for all tabs. When it closes, another tab listens.
  // It connects anew by itself, also after a laptop was closed.
  const tabs = new BroadcastChannel("mai-agent");
  const heard = (news) => { if (news === "changed") refresh(); else if (!live.over) lost(); };
  const tell = (news) => { heard(news); tabs.postMessage(news); };
  tabs.onmessage = (event) => heard(event.data);
  navigator.locks.request("mai-agent", () => new Promise(() => {
    const events = new EventSource("/events");
    events.onmessage = () => tell("changed");
    events.onerror = () => tell("lost");
  }));
  draw();
})();
