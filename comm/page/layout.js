// Where things are: ranks as cards on an ellipse if their letters can be read, else as spokes; the ways between them.

const make = (tag, attributes, parent) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
};
const write = (text, attributes, parent) => {
  const made = make("text", attributes, parent);
  made.textContent = text;
  return made;
};
const sums = data.kind === "sum", columns = data.kind === "blocks" ? 2 : 1;
const rows = data.slots / columns, radial = data.size > 12 || rows > 16;
// cells without letters have a colour of their own each, neighbours alike, so that waves can be seen
const palette = !radial || rows <= 8 ? data.colours
  : Array.from({ length: rows }, (_, i) => `oklch(0.56 0.15 ${360 * i / rows})`);
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
  const W = 1700, H = 1000, cell = columns === 2 ? { w: 54, h: 25, gap: 3, left: 8, top: 50 }
    : { w: Math.max(96, 17 * (sums ? data.size : 0)), h: 25, gap: 3, left: 30, top: 34 };
  const w = cell.left + columns * (cell.w + 6) + 2, h = cell.top + rows * (cell.h + cell.gap) + 6;
  const place = (k) => data.size === 1 ? [[W / 2, H / 2]]
    : ellipse((W - w * k - 20) / 2, (H - h * k - 20) / 2).map(([x, y]) => [W / 2 + x, H / 2 + y]);
  const room = Math.max(20, 90 - 6 * data.size);        // between cards, for what flies there
  const apart = (k) => {
    const at = place(k), free = (x, y, u, v) => Math.abs(x - u) > w * k + room || Math.abs(y - v) > h * k + room;
    return w * k < W * 0.3 && h * k < H * 0.37
      && at.every(([x, y], i) => at.every(([u, v], j) => i >= j || free(x, y, u, v)));
  };
  let k = 3;
  while (k > 0.3 && !apart(k)) k -= 0.02;
  const centres = place(k);
  const port = (a, b) => {                              // where the line from a's centre to b's leaves a's card
    const [x, y] = centres[a], dx = centres[b][0] - x, dy = centres[b][1] - y;
    const t = Math.min((w * k / 2 + 5) / Math.abs(dx || 1e-9), (h * k / 2 + 5) / Math.abs(dy || 1e-9));
    return [x + dx * t, y + dy * t];
  };
  const at = centres.map(([x, y]) => `translate(${x - w * k / 2} ${y - h * k / 2}) scale(${k})`);
  return { W, H, cell, port, size: [w, h], token: Math.min(32, 15 * k), at };
}

function spokes() {                                     // cells in a row outwards from the circle
  const R = 300, each = Math.min(60, SPOKE / rows), gap = each > 3 ? Math.min(2, each / 5) : 0;
  const around = Math.min(90, 2 * Math.PI * R / data.size * 0.84);
  const cell = { w: around / columns, h: each - gap, gap, left: 0, top: 26 };
  const w = columns * cell.w, h = SPOKE + cell.top;
  const point = (rank, r) => [570 + r * Math.cos(angle(rank)), 570 + r * Math.sin(angle(rank))];
  const at = data.letters.map((_, rank) =>
    `translate(${point(rank, R + h)}) rotate(${angle(rank) * 180 / Math.PI + 90}) translate(${-w / 2} 0)`);
  return { W: 1140, H: 1140, cell, size: [w, h], token: 17, port: (rank) => point(rank, R - 8), at };
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
