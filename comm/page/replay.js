// What every rank holds after every step: the same replay as comm/render.py, and how to say it.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
const upper = data.letters.map((name) => name.toUpperCase());
const owner = new Map(data.letters.map((name, rank) => [name, rank]));
const last = data.steps.length;

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

const summands = (text) => [...new Set(text.split("+").map((part) => owner.get(part.replace(/\d+$/, ""))))]
  .sort((a, b) => a - b);                               // the ranks whose summands are in a sum
const changed = (k, rank, slot) => k > 0 && states[k][rank][slot] !== states[k - 1][rank][slot];
const tone = (slot, text) => (data.kind === "blocks" ? +text.match(/\d+$/)[0] : slot) % palette.length;
const hue = (slot, text) => palette[tone(slot, text)];

function amount(chunks) {
  if (data.bytes !== null) {
    const bytes = data.bytes * chunks / data.chunks;
    const power = Math.min(5, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
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
