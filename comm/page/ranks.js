// Ranks and their cells, the panel of the chosen rank, the table.

const cells = data.letters.map(() => []);
const groups = data.letters.map((_, rank) => build(rank));
const drawn = data.letters.map(() => []);

function build(rank) {
  const [w, h] = layout.size, cell = layout.cell;
  const group = make("g", { class: "rank", tabindex: 0, role: "group", transform: layout.at[rank] }, $("ranks"));
  group.dataset.rank = rank;
  make("rect", { class: "card", width: w, height: h, rx: radial ? 2 : 7 }, group);
  write(upper[rank], { class: "name", x: radial ? w / 2 : 10, y: radial ? 20 : 24,
    "font-size": data.size > 32 ? 17 : 21, "text-anchor": radial ? "middle" : "start" }, group);
  group.sum = write("", { class: "sum", x: w - 8, y: 23, "font-size": 13, "text-anchor": "end" }, group);
  if (columns === 2 && !radial) ["has for", "got from"].forEach((text, i) => write(text, { class: "sum", y: 45,
    x: cell.left + i * (cell.w + 6) + cell.w / 2, "font-size": 12, "text-anchor": "middle" }, group));
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
    write(slot, { class: "slot", x: -7, y: 18, "font-size": 15, "text-anchor": "end" }, made);
  }
  made.tip = make("title", {}, made);
  return made;
}

function paint(rank, slot, k) {
  const text = states[k][rank][slot], made = cells[rank][slot], mark = changed(k, rank, slot);
  const key = `${text}${mark}`;
  if (drawn[rank][slot] === key) return;
  drawn[rank][slot] = key;
  const cell = layout.cell, there = text === data.empty ? [] : sums ? summands(text) : [0];
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
  names.forEach((name, i) => write(name, { class: "mark", x: ((sums ? there[i] : 0) + 0.5) * width, y: 18,
    "font-size": sums ? Math.min(16, width) : 15 }, made));
}

function show(k) {
  for (let rank = 0; rank < data.size; rank++) {
    for (let slot = 0; slot < data.slots; slot++) paint(rank, slot, k);
    groups[rank].setAttribute("aria-label", `Rank ${upper[rank]} holds ${radial
      ? `${states[k][rank].filter((text) => text !== data.empty).length} of ${data.slots}`
      : states[k][rank].join(", ")}`);
    if (!radial && data.carries) groups[rank].sum.textContent = `sent ${amount(leaving[k][rank])}`;
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
    const [line, head, body] = ["li", "b", "span"].map((tag) => document.createElement(tag));
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
