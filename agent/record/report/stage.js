"use strict";
// The picture of a step: before and after its action, both with a slider, or the difference; with zoom and pan.
const makeStage = ({ $, el, svg, pictures }) => {
  const MODES = ["before", "after", "slider", "difference"];
  // A block has changed if a pixel differs by more than this per channel; less is due to compression.
  const BLOCK = 12, DIFFERS = 26;
  const stage = $("stage");
  const canvas = el("div", { class: "canvas" });
  let mode = "before", zoom = 1, step = null, following = null;

  const both = () => Boolean(following) && following.picture !== null && step.picture !== null;
  const possible = (wanted) => wanted === "before" || (wanted === "after" ? Boolean(following) && following.picture !== null : both());

  function show(nextStep, nextFollowing) {
    step = nextStep;
    following = nextFollowing;
    if (mode === "after") mode = "before";
    draw();
  }

  function choose(wanted) {
    if (!step || !possible(wanted)) return;
    mode = wanted;
    draw();
  }

  function picture(index, words, id) {
    const [width, height] = pictures[index].size;
    return el("img", { src: pictures[index].url, alt: `Screenshot. ${words}.`, width, height, id, draggable: "false" });
  }

  function draw() {
    const shown = possible(mode) ? mode : "before";
    for (const name of MODES) {
      $(`show-${name}`).disabled = !possible(name);
      $(`show-${name}`).setAttribute("aria-pressed", String(name === shown));
    }
    $("split-line").hidden = shown !== "slider";
    const source = shown === "after" ? following.picture : step.picture;
    const missing = source === null;
    for (const name of ["in", "out", "fit"]) $(`zoom-${name}`).disabled = missing;
    stage.classList.toggle("gone", missing);
    if (missing) {
      stage.removeAttribute("style");
      stage.replaceChildren(el("p", { class: "gone", text: "The screenshot of this step is missing." }));
      $("caption").textContent = "";
      return;
    }
    const before = "wanted" in step ? "What the model saw" : `Before step ${step.number}: what the model saw`;
    const after = following ? `After step ${step.number}: what step ${following.number} saw` : "";
    const [width, height] = pictures[source].size;
    const parts = [picture(source, shown === "after" ? after : before, "shot")];
    let words = shown === "after" ? after : before;
    if (shown === "slider") {
      parts.push(picture(following.picture, after, "other"));
      words = `Step ${step.number}: before it on the left, after it on the right`;
    }
    if (shown === "difference") {
      parts.push(el("canvas", { id: "differs", role: "img", "aria-label": `What changed with step ${step.number}` }));
      words = `Step ${step.number}: what changed is bright`;
    }
    if (step.wanted) {
      parts.push(overlay(step.wanted, width, height, "wanted"));
      words += "; green: what was asked for";
    }
    if (shown !== "after" && step.marks) parts.push(overlay(step.marks, width, height));
    if (shown !== "after" && step.proposed) {
      parts.push(overlay(step.proposed, width, height, "proposed"));
      words += "; dashed: where the model wanted it, before it was changed";
    }
    canvas.replaceChildren(...parts);
    if (stage.firstChild !== canvas) stage.replaceChildren(canvas);
    stage.style.aspectRatio = `${width} / ${height}`;
    $("caption").textContent = `${words}, ${width}×${height}.` + (pictures[source].reduced ? " Made smaller for this report." : "");
    split();
    if (shown === "difference") compare(width, height);
  }

  // ---- before and after in one

  function split() {
    const other = $("other");
    if (other) other.style.clipPath = `inset(0 0 0 ${$("split").value}%)`;
    canvas.style.setProperty("--split", `${$("split").value}%`);
    canvas.classList.toggle("split", Boolean(other));
  }

  async function compare(width, height) {
    const [ours, box] = [step, $("differs")];
    const images = [step.picture, following.picture].map((index) => Object.assign(new Image(), { src: pictures[index].url }));
    try {
      await Promise.all(images.map((image) => image.decode()));
    } catch { return; }
    if (ours !== step || box !== $("differs")) return;
    const [w, h] = [images[0].naturalWidth, images[0].naturalHeight];
    [box.width, box.height] = [w, h];
    const pen = box.getContext("2d", { willReadFrequently: true });
    const pixels = images.toReversed().map((image) => {
      pen.drawImage(image, 0, 0, w, h);
      return pen.getImageData(0, 0, w, h);
    });
    const [now, old] = pixels.map((one) => one.data);
    const [columns, rows] = [Math.ceil(w / BLOCK), Math.ceil(h / BLOCK)];
    const most = new Uint16Array(columns * rows);
    for (let y = 0, at = 0; y < h; y += 1) {
      for (let x = 0; x < w; x += 1, at += 4) {
        const apart = Math.abs(now[at] - old[at]) + Math.abs(now[at + 1] - old[at + 1]) + Math.abs(now[at + 2] - old[at + 2]);
        const block = Math.floor(y / BLOCK) * columns + Math.floor(x / BLOCK);
        if (apart > most[block]) most[block] = apart;
      }
    }
    pen.putImageData(pixels[0], 0, 0);
    pen.fillStyle = "rgb(10 12 16 / .72)";
    let changed = 0;
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        if (most[row * columns + column] > DIFFERS * 3) changed += 1;
        else pen.fillRect(column * BLOCK, row * BLOCK, BLOCK, BLOCK);
      }
    }
    const share = (100 * changed) / (columns * rows);
    const told = changed ? `${share < 1 ? "less than 1" : Math.round(share)} % of the screen changed` : "nothing changed that can be seen";
    $("caption").textContent = `Step ${step.number}: ${told}, ${width}×${height}.`;
  }

  // ---- the target, drawn in a box of the screenshot's own size, so that it scales with it

  function overlay(marks, width, height, id = "mark") {
    const box = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", id });
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
    if (marks.kind === "polygon") {
      draw("path", { d: `M${points.map((point) => point.join(" ")).join("L")}Z` }, ["halo", "mark"]);
      return box;
    }
    if (marks.kind === "field") {
      const [left, top, wide, high] = marks.box;
      draw("rect", { x: left * width, y: top * height, width: wide * width, height: high * height, rx: 3 * scale }, ["halo ring", "mark ring"]);
      return box;
    }
    draw("circle", { cx: x, cy: y, r: 15 * scale }, ["halo ring", "mark ring"]);
    draw("circle", { cx: x, cy: y, r: 2.5 * scale }, ["dot"]);
    return box;
  }

  // The surroundings of the target, unscaled, so that its words can be read.
  function glass(one) {
    const aim = one.marks || one.wanted;
    const point = aim && aim.points.filter(Boolean).at(-1);
    if (one.picture === null || !point) return null;
    const [width, height] = pictures[one.picture].size;
    const lens = el("div", { class: "glass", role: "img", "aria-label": "The target, enlarged" });
    lens.style.backgroundImage = `url("${pictures[one.picture].url}")`;
    lens.style.backgroundSize = `${width}px ${height}px`;
    const [x, y] = [point[0] * width, point[1] * height];
    lens.style.backgroundPosition = `calc(50% + ${width / 2 - x}px) calc(50% + ${height / 2 - y}px)`;
    return lens;
  }

  // ---- larger and smaller

  const target = () => {
    const aim = step && mode !== "after" && (step.marks || step.wanted);
    return (aim && aim.points.filter(Boolean).at(-1)) || [0.5, 0.5];
  };

  // Keeps the point (shares of the picture) where it is on the stage, or brings it to the middle.
  function enlarge(wanted, point = target(), at = [stage.clientWidth / 2, stage.clientHeight / 2]) {
    zoom = Math.min(8, Math.max(1, wanted));
    canvas.style.width = `${zoom * 100}%`;
    stage.classList.toggle("enlarged", zoom > 1);
    if (zoom > 1) stage.tabIndex = 0;
    else stage.removeAttribute("tabindex");
    stage.scrollLeft = point[0] * canvas.offsetWidth - at[0];
    stage.scrollTop = point[1] * canvas.offsetHeight - at[1];
    $("zoom-fit").textContent = zoom > 1 ? `${zoom.toFixed(1).replace(".0", "")}×` : "Fit";
  }

  const here = (event) => {
    const area = stage.getBoundingClientRect();
    const at = [event.clientX - area.left, event.clientY - area.top];
    return [[(at[0] + stage.scrollLeft) / canvas.offsetWidth, (at[1] + stage.scrollTop) / canvas.offsetHeight], at];
  };
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey || stage.firstChild !== canvas) return;
    event.preventDefault();
    enlarge(zoom * (event.deltaY < 0 ? 1.25 : 0.8), ...here(event));
  }, { passive: false });
  stage.addEventListener("dblclick", (event) => { if (stage.firstChild === canvas) enlarge(zoom > 1 ? 1 : 2.5, ...here(event)); });
  let held = null;
  stage.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0 && zoom > 1) held = [event.clientX + stage.scrollLeft, event.clientY + stage.scrollTop];
  });
  addEventListener("pointermove", (event) => { if (held) stage.scrollTo(held[0] - event.clientX, held[1] - event.clientY); });
  addEventListener("pointerup", () => { held = null; });

  for (const name of MODES) $(`show-${name}`).addEventListener("click", () => choose(name));
  $("split").addEventListener("input", split);
  $("zoom-in").addEventListener("click", () => enlarge(zoom * 1.6));
  $("zoom-out").addEventListener("click", () => enlarge(zoom / 1.6));
  $("zoom-fit").addEventListener("click", () => enlarge(1));

  return {
    show, glass,
    flip: () => choose(mode === "after" ? "before" : "after"),
    toggle: (name) => choose(mode === name ? "before" : name),
    zoom: () => { if (stage.firstChild === canvas) enlarge(zoom > 1 ? 1 : 3); },
  };
};
