"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
const upper = data.letters.map((name) => name.toUpperCase());
const owner = new Map(data.letters.map((name, rank) => [name, rank]));
const last = data.steps.length;

// ---- what ranks hold: the same replay as comm/render.py

function added(mine, came) {
  if (!data.once) return `${mine}+${came}`;
  const known = mine.split("+");
  return known.concat(came.split("+").filter((summand) => !known.includes(summand))).join("+");
}

function after(cells, step) {
  const next = cells.slice();
  for (const [source, to, sent, landed, reduce] of step.moves) {
    if (next[to] === cells[to]) next[to] = cells[to].slice();
    sent.forEach((slot, i) => {
      const place = landed ? landed[i] : slot, came = cells[source][slot];
      next[to][place] = reduce ? added(next[to][place], came) : came;
    });
  }
  return next;
}

const states = [data.start];
for (const step of data.steps) states.push(after(states.at(-1), step));
const leaving = [data.letters.map(() => 0)];            // chunks that have left each rank after each step
for (const step of data.steps) {
  const total = leaving.at(-1).slice();
  for (const [source, , sent] of step.moves) total[source] += sent.length;
  leaving.push(total);
}

const summands = (text) => text.split("+").map((part) => owner.get(part.replace(/\d+$/, "")));
const changed = (k, rank, slot) => k > 0 && states[k][rank][slot] !== states[k - 1][rank][slot];
const tone = (slot, text) => (data.kind === "blocks" ? +text.match(/\d+$/)[0] : slot) % palette.length;
const hue = (slot, text) => palette[tone(slot, text)];

function amount(chunks) {
  if (data.bytes !== null) {
    const bytes = data.bytes * chunks / data.chunks, power = Math.min(5, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
    return `${+(bytes / 1000 ** power).toPrecision(4)} ${["B", "kB", "MB", "GB", "TB", "PB"][power]}`;
  }
  const gcd = (a, b) => b ? gcd(b, a % b) : a, divisor = gcd(chunks, data.chunks) || 1;
  const [top, bottom] = [chunks / divisor, data.chunks / divisor];
  return top === 0 ? "0" : bottom === 1 ? (top === 1 ? "M" : `${top} M`) : `${top}/${bottom} M`;
}

function ranges(slots) {                                // "0-3,5"
  const parts = [];
  for (const slot of [...slots].sort((a, b) => a - b)) {
    if (parts.length && slot === parts.at(-1)[1] + 1) parts.at(-1)[1] = slot; else parts.push([slot, slot]);
  }
  return parts.map(([a, b]) => a === b ? `${a}` : `${a}-${b}`).join(",");
}

// ---- where things are

const make = (tag, attributes, parent) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
};
const sums = data.kind === "sum", columns = data.kind === "blocks" ? 2 : 1;
const rows = data.slots / columns, radial = data.size > 12 || rows > 16;
// cells without letters have a colour of their own each, neighbours alike, so that waves can be seen
const palette = radial && rows > 8 ? Array.from({ length: rows }, (_, i) => `oklch(0.56 0.15 ${360 * i / rows})`) : data.colours;
const SPOKE = 225;
const start = data.size === 2 ? Math.PI : -Math.PI / 2;
const angle = (rank) => start + 2 * Math.PI * rank / data.size;

function ellipse(a, b) {                                // a point for every rank, as far apart along the line as can be
  const fine = 2000, points = [];
  let length = 0, x = a * Math.cos(start), y = b * Math.sin(start);
  for (let i = 0; i < fine; i++) {
    points.push([x, y, length]);
    const turn = start + 2 * Math.PI * (i + 1) / fine, [u, v] = [a * Math.cos(turn), b * Math.sin(turn)];
    length += Math.hypot(u - x, v - y);
    [x, y] = [u, v];
  }
  return data.letters.map((_, rank) => points.find((point) => point[2] >= length * rank / data.size - 1e-6));
}

function cards() {                                      // upright cards on an ellipse, as large as they fit
  const W = 1700, H = 1000, cell = { w: sums ? Math.max(46, 17 * data.size) : 54, h: 25, gap: 3, left: 30, top: 34 };
  if (columns === 2) Object.assign(cell, { left: 8, top: 50 });
  const w = cell.left + columns * (cell.w + 6) + 2, h = cell.top + rows * (cell.h + cell.gap) + 6;
  const place = (k) => data.size === 1 ? [[W / 2, H / 2]]
    : ellipse((W - w * k - 20) / 2, (H - h * k - 20) / 2).map(([x, y]) => [W / 2 + x, H / 2 + y]);
  const room = Math.max(20, 90 - 6 * data.size);        // between cards, for what flies there
  const apart = (k) => { const at = place(k); return w * k < W * 0.3 && h * k < H * 0.37 && at.every(([x, y], i) => at.every(
    ([u, v], j) => i >= j || Math.abs(x - u) > w * k + room || Math.abs(y - v) > h * k + room)); };
  let k = 3;
  while (k > 0.3 && !apart(k)) k -= 0.02;
  const centres = place(k);
  const port = (a, b) => {                              // where the line from a's centre to b's leaves a's card
    const [x, y] = centres[a], dx = centres[b][0] - x, dy = centres[b][1] - y;
    const t = Math.min((w * k / 2 + 5) / Math.abs(dx || 1e-9), (h * k / 2 + 5) / Math.abs(dy || 1e-9));
    return [x + dx * t, y + dy * t];
  };
  return { W, H, cell, port, size: [w, h], token: Math.min(32, 15 * k), at: centres.map(([x, y]) =>
    `translate(${x - w * k / 2} ${y - h * k / 2}) scale(${k})`) };
}

function spokes() {                                     // cells in a row outwards from the circle
  const R = 300, L = SPOKE, cell = { w: Math.min(56, 2 * Math.PI * R / data.size * 0.84) / columns, gap: 0, left: 0, top: 26 };
  cell.h = Math.min(60, L / rows);
  cell.gap = cell.h > 3 ? Math.min(2, cell.h / 5) : 0;
  cell.h -= cell.gap;
  const w = columns * cell.w, h = L + cell.top;
  const point = (rank, r) => [570 + r * Math.cos(angle(rank)), 570 + r * Math.sin(angle(rank))];
  return { W: 1140, H: 1140, cell, size: [w, h], token: 17, port: (a) => point(a, R - 8), at: data.letters.map((_, rank) => {
    const [x, y] = point(rank, R + h);
    return `translate(${x} ${y}) rotate(${angle(rank) * 180 / Math.PI + 90}) translate(${-w / 2} 0)`;
  }) };
}

const layout = radial ? spokes() : cards();

function route(from, to, paired) {                      // a curve, bent to the centre; there and back lie side by side
  const [x, y] = layout.port(from, to), [u, v] = layout.port(to, from), d = Math.hypot(u - x, v - y) || 1;
  const side = paired ? (radial ? 14 : layout.token * 2) : Math.min(20, d * 0.08);
  const cx = layout.W / 2 - (x + u) / 2, cy = layout.H / 2 - (y + v) / 2, inward = Math.hypot(cx, cy) || 1;
  const bend = Math.min(radial ? 0.35 : 0.22, (radial ? 40 + d / 2 : d / 5) / inward);
  const mx = (x + u) / 2 + cx * bend - (v - y) / d * side, my = (y + v) / 2 + cy * bend + (u - x) / d * side;
  return { d: `M${x} ${y}Q${mx} ${my} ${u} ${v}`, at: (t) => [
    (1 - t) ** 2 * x + 2 * t * (1 - t) * mx + t * t * u, (1 - t) ** 2 * y + 2 * t * (1 - t) * my + t * t * v] };
}

// ---- ranks and their cells

const cells = data.letters.map(() => []);
const groups = data.letters.map((_, rank) => build(rank));
const drawn = data.letters.map(() => []);

function build(rank) {
  const group = make("g", { class: "rank", tabindex: 0, role: "group", transform: layout.at[rank], "data-rank": rank }, $("ranks"));
  const [w, h] = layout.size, cell = layout.cell;
  make("rect", { class: "card", width: w, height: h, rx: radial ? 2 : 7, ...(radial ? { "fill-opacity": 0 } : {}) }, group);
  const name = make("text", { class: "name", x: radial ? w / 2 : 10, y: radial ? 18 : 24, "font-size": radial ? 17 : 21,
    ...(radial ? { "text-anchor": "middle" } : {}) }, group);
  name.textContent = upper[rank];
  group.sum = make("text", { class: "sum", x: w - 8, y: 23, "font-size": 13, "text-anchor": "end" }, group);
  if (columns === 2 && !radial) ["has for", "got from"].forEach((text, i) => { make("text", { class: "sum", x: cell.left
    + i * (cell.w + 6) + cell.w / 2, y: 45, "font-size": 12, "text-anchor": "middle" }, group).textContent = text; });
  for (let slot = 0; slot < data.slots; slot++) cells[rank].push(buildCell(group, slot, cell));
  group.addEventListener("click", () => choose(rank));
  group.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(rank); });
  return group;
}

function buildCell(group, slot, cell) {
  const column = Math.floor(slot / rows), row = slot % rows;
  const x = cell.left + column * (cell.w + (radial ? 0 : 6));
  // the first chunk lies innermost on a spoke, on top in a card
  const y = cell.top + (radial ? SPOKE - (row + 1) * (cell.h + cell.gap) : row * (cell.h + cell.gap));
  const made = make("g", { transform: `translate(${x} ${y})` }, group);
  made.bed = make("rect", { class: "bed", width: cell.w, height: cell.h, rx: radial ? 0 : 3 }, made);
  made.fill = make("path", {}, made);
  make("rect", { class: "frame", width: cell.w, height: cell.h, rx: radial ? 0 : 3 }, made);
  if (!radial && columns === 1) {
    make("text", { class: "slot", x: -7, y: 18, "font-size": 15, "text-anchor": "end" }, made).textContent = slot;
  }
  made.tip = make("title", {}, made);
  return made;
}

function paint(rank, slot, k) {
  const text = states[k][rank][slot], made = cells[rank][slot], mark = changed(k, rank, slot);
  const key = `${text}${mark}`;
  if (drawn[rank][slot] === key) return;
  drawn[rank][slot] = key;
  const cell = layout.cell, there = text === data.empty ? [] : sums ? [...new Set(summands(text))].sort((a, b) => a - b) : [0];
  const width = cell.w / (sums ? data.size : 1);
  let d = radial && there.length ? `M0 0h${cell.w * there.length / (sums ? data.size : 1)}v${cell.h}H0z` : "";
  for (let i = 0, j; !radial && i < there.length; i = j) {
    for (j = i + 1; j < there.length && there[j] === there[j - 1] + 1;) j++;
    d += `M${there[i] * width} 0h${(j - i) * width}v${cell.h}H${there[i] * width}z`;
  }
  made.fill.setAttribute("d", d);
  if (there.length) made.fill.setAttribute("fill", hue(slot, text));
  if (radial) made.bed.setAttribute("style", there.length ? `fill: ${hue(slot, text)}; fill-opacity: 0.2` : "");
  made.setAttribute("class", `${sums && there.length === data.size ? "full" : ""} ${mark ? "changed" : ""}`);
  made.dataset.held = there.length;
  made.tip.textContent = `${upper[rank]}, ${data.heads[slot]}: ${text === data.empty ? "nothing" : text}`;
  made.querySelectorAll(".mark").forEach((old) => old.remove());
  if (radial) return;
  const names = sums ? there.map((r) => data.letters[r]) : there.map(() => text);
  names.forEach((name, i) => { make("text", { class: "mark", x: ((sums ? there[i] : 0) + 0.5) * width, y: 18,
    "font-size": sums ? Math.min(16, width) : 15 }, made).textContent = name; });
}

function show(k) {
  for (let rank = 0; rank < data.size; rank++) {
    for (let slot = 0; slot < data.slots; slot++) paint(rank, slot, k);
    groups[rank].setAttribute("aria-label", `Rank ${upper[rank]} holds ${data.size > 12 ? "" : states[k][rank].join(", ")}`);
    if (!radial && data.moves) groups[rank].sum.textContent = `sent ${amount(leaving[k][rank])}`;
  }
  fillTable(k);
  fillPanel(k);
}

// ---- the chosen rank, and the table

let chosen = radial ? 0 : null;

function choose(rank) {
  chosen = chosen === rank && !radial ? null : rank;
  fillPanel(now);
  routes(now);
}

function fillPanel(k) {
  groups.forEach((group, rank) => group.classList.toggle("chosen", rank === chosen));
  $("panel").hidden = !radial;
  if (!radial) return;
  $("panel").querySelector("h2").textContent = `Rank ${upper[chosen]}: sent ${amount(leaving[k][chosen])}`;
  $("panel").querySelector("ol").replaceChildren(...states[k][chosen].map((text, slot) => {
    const line = document.createElement("li"), head = document.createElement("b"), body = document.createElement("span");
    const count = text === data.empty ? 0 : text.split("+").length;
    head.textContent = data.heads[slot];
    body.textContent = !sums || count < 2 ? text : `${count} of ${data.size}: ${text}`;
    line.title = text;
    line.className = changed(k, chosen, slot) ? "changed" : "";
    line.append(head, body);
    return line;
  }));
  const first = $("panel").querySelector(".changed");
  if (first) $("panel").scrollTop = first.offsetTop - $("panel").clientHeight / 2;
}

function fillTable(k) {
  if (!$("details").open) return;
  const row = (tag, texts, mark) => {
    const line = document.createElement("tr");
    texts.forEach((text, i) => {
      const cell = document.createElement(i ? tag : "th");
      const count = text.split("+").length;
      cell.textContent = count > 12 ? `${text.split("+", 2).join("+")}+... (${count})` : text;
      cell.title = text;
      if (i && mark && mark(i - 1)) cell.className = "changed";
      line.append(cell);
    });
    return line;
  };
  $("table").replaceChildren(row("th", ["rank", ...data.heads]), ...states[k].map((texts, rank) =>
    row("td", [upper[rank], ...texts], (slot) => changed(k, rank, slot))));
}

// ---- messages

const tint = (k, [source, , sent]) => sent.length > 1 ? -1 : tone(sent[0], states[k - 1][source][sent[0]]);
const ink = (index) => index < 0 ? data.mixed : palette[index];

function ways(moves) {                                  // the curve of every message
  const pairs = new Set(moves.map(([source, to]) => source * data.size + to));
  return moves.map(([source, to]) => route(source, to, pairs.has(to * data.size + source)));
}

function routes(k) {                                    // the ways that messages took in step k
  const group = $("routes"), moves = k ? data.steps[k - 1].moves : [];
  group.replaceChildren();
  group.setAttribute("class", moves.length > 1000 ? "many crowd" : moves.length > 200 ? "many" : "");
  for (const part of bundles(k, moves)) {
    make("path", { class: `route ${part.look}`, stroke: ink(part.index), d: part.d,
      ...(moves.length > 200 ? {} : { "marker-end": `url(#tip${part.index})` }) }, group);
  }
}

function bundles(k, moves) {                            // messages of one look together, one by one if they are few
  const found = new Map(), curves = ways(moves);
  moves.forEach((move, i) => {
    const far = picked && chosen !== null && move[0] !== chosen && move[1] !== chosen;
    const look = `${move[4] ? "add" : "copy"}${far ? " faded" : ""}`, index = tint(k, move);
    const key = moves.length > 200 ? `${look} ${index}` : i;
    if (!found.has(key)) found.set(key, { look, index, d: "" });
    found.get(key).d += curves[i].d;
  });
  return found.values();
}

let picked = false;                                     // on spokes a rank is chosen from the start; fade when one was asked for

function tokens(k) {                                    // what flies in step k: a function that puts it at time t
  const group = $("flight"), moves = data.steps[k - 1].moves;
  group.replaceChildren();
  const curves = ways(moves);
  if (radial || moves.length > 40) {
    const parts = new Map();
    moves.forEach((move, i) => {
      const index = tint(k, move);
      if (!parts.has(index)) parts.set(index, []);
      parts.get(index).push(curves[i]);
    });
    const paths = [...parts].map(([index, own]) => [make("path", { class: "dots", stroke: ink(index) }, group), own]);
    return (t) => paths.forEach(([path, own]) => path.setAttribute("d",
      own.map((way) => { const [x, y] = way.at(t); return `M${x.toFixed(1)} ${y.toFixed(1)}h0`; }).join("")));
  }
  const made = moves.map((move) => token(group, k, move));
  return (t) => made.forEach((one, i) => one.setAttribute("transform", `translate(${curves[i].at(t)})`));
}

function token(group, k, move) {
  const [source, , sent] = move, held = sent.map((slot) => states[k - 1][source][slot]);
  let text = held.join(" ");
  if (sums) text = sent.length > 1 ? `chunks ${ranges(sent)}`
    : `${sent[0]}: ${[...new Set(summands(held[0]))].sort((a, b) => a - b).map((r) => data.letters[r]).join("")}`;
  if (text.length > 13) text = sent.length === 1 ? `chunk ${sent[0]}` : `${sent.length} ${columns === 2 ? "blocks" : "chunks"}`;
  const size = layout.token, w = size * (0.62 * text.length + 1), one = make("g", { class: "token" }, group);
  make("rect", { x: -w / 2, y: -size * 0.8, width: w, height: size * 1.6, rx: size * 0.5, fill: ink(tint(k, move)) }, one);
  make("text", { y: size * 0.36, "font-size": size }, one).textContent = text;
  return one;
}

// ---- time

let now = 0, flying = null, playing = null;
const speed = () => +$("speed").value;

function tell(k) {
  $("number").textContent = k ? `Step ${k} of ${last}` : last ? "At the start" : "Nothing to do";
  $("verb").textContent = k ? data.steps[k - 1].verb : "";
  const moves = k ? data.steps[k - 1].moves : [], counts = leaving[k].map((total, r) => k ? total - leaving[k - 1][r] : 0);
  const top = Math.max(...counts);
  $("sent").textContent = !last ? "one rank has everything already" : k === 0
    ? `${last} step${last > 1 ? "s" : ""} to come` : !data.moves ? `${moves.length} messages without data`
    : `${moves.length} message${moves.length > 1 ? "s" : ""}, ${Math.min(...counts) === top ? "" : "at most "}${amount(top)} from a rank;`
    + ` so far ${Math.min(...leaving[k]) === Math.max(...leaving[k]) ? "" : "at most "}${amount(Math.max(...leaving[k]))}`;
  $("slider").value = k;
  $("slider").setAttribute("aria-valuetext", $("number").textContent);
  $("first").disabled = $("back").disabled = k === 0;
  $("last").disabled = $("forward").disabled = k === last;
  document.body.dataset.step = k;
}

function land() {                                       // whatever flies is there at once
  if (!flying) return;
  cancelAnimationFrame(flying.frame);
  flying = null;
  $("flight").replaceChildren();
  show(now);
  document.body.dataset.still = "true";
}

function go(k) {
  k = Math.max(0, Math.min(last, k));
  land();
  const from = now;
  now = k;
  tell(k);
  if (Math.abs(k - from) !== 1 || still.matches) { routes(k); show(k); return; }
  fly(Math.max(k, from), k < from);
}

function fly(step, backwards) {
  document.body.dataset.still = "false";
  routes(step);
  if (backwards) show(now);
  const put = tokens(step), began = performance.now(), length = 1100 / speed();
  const frame = (time) => {
    const t = Math.min(1, Math.max(0, time - began) / length), eased = t * t * (3 - 2 * t);
    put(backwards ? 1 - eased : eased);
    if (t < 1) { flying.frame = requestAnimationFrame(frame); return; }
    land();
    if (backwards) routes(now);
  };
  flying = { frame: requestAnimationFrame(frame) };
  put(backwards ? 1 : 0);
}

function toggle(on) {
  clearInterval(playing);
  playing = null;
  if (on) {
    if (now === last) go(0);
    const beat = () => {
      if (flying) return;
      if (now === last) toggle(false); else go(now + 1);
    };
    playing = setInterval(beat, still.matches ? 1300 / speed() : 250 / speed());
    if (last) beat(); else toggle(false);
  }
  document.body.classList.toggle("playing", playing !== null);
  $("play").setAttribute("aria-label", playing === null ? "Play" : "Pause");
}

const by = (action) => () => { toggle(false); action(); };
$("first").onclick = by(() => go(0));
$("back").onclick = by(() => go(now - 1));
$("forward").onclick = by(() => go(now + 1));
$("last").onclick = by(() => go(last));
$("play").onclick = () => toggle(playing === null);
$("slider").oninput = by(() => go(+$("slider").value));
$("speed").onchange = () => { if (playing !== null) toggle(true); };
$("details").ontoggle = () => fillTable(now);
$("ranks").addEventListener("click", () => { picked = true; routes(now); });

const keys = { ArrowRight: "forward", ArrowLeft: "back", Home: "first", End: "last", " ": "play" };
document.addEventListener("keydown", (event) => {
  if (!(event.key in keys) || event.target.tagName === "SELECT" || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  $(keys[event.key]).click();
});

$("slider").max = last;
document.body.classList.toggle("radial", radial);
$("stage").setAttribute("viewBox", `0 0 ${layout.W} ${layout.H}`);
$("legend").textContent = data.legend;
const defs = make("defs", {}, $("stage"));
for (let index = -1; index < palette.length; index++) {
  const tip = make("marker", { id: `tip${index}`, viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: radial ? 11 : 16,
    markerHeight: radial ? 11 : 16, markerUnits: "userSpaceOnUse", orient: "auto" }, defs);
  make("path", { d: "M0 0L10 5L0 10z", fill: ink(index) }, tip);
}
document.body.dataset.still = "true";
tell(0);
show(0);
