// Messages: the ways that they took in a step, and what flies.

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

let picked = false;                                     // on spokes a rank is chosen from the start: fade none for it

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
    : `${sent[0]}: ${summands(held[0]).map((r) => data.letters[r]).join("")}`;
  const unit = columns === 2 ? "blocks" : "chunks";
  if (text.length > 13) text = sent.length === 1 ? `chunk ${sent[0]}` : `${sent.length} ${unit}`;
  const size = layout.token, w = size * (0.62 * text.length + 1), one = make("g", { class: "token" }, group);
  const fill = ink(tint(k, move));
  make("rect", { x: -w / 2, y: -size * 0.8, width: w, height: size * 1.6, rx: size * 0.5, fill }, one);
  write(text, { y: size * 0.36, "font-size": size }, one);
  return one;
}
