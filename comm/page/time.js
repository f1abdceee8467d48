// Time: steps forwards and back, playing, buttons and keys.

let now = 0, flying = null, playing = null;
const speed = () => +$("speed").value;

function tell(k) {
  $("number").textContent = k ? `Step ${k} of ${last}` : last ? "At the start" : "Nothing to do";
  $("verb").textContent = k ? data.steps[k - 1].verb : "";
  $("sent").textContent = amounts(k);
  $("slider").value = k;
  $("slider").setAttribute("aria-valuetext", $("number").textContent);
  $("first").disabled = $("back").disabled = k === 0;
  $("last").disabled = $("forward").disabled = k === last;
  document.body.dataset.step = k;
}

function amounts(k) {                                   // how many messages, and how much left each rank
  if (!last) return "one rank has everything already";
  if (k === 0) return `${last} step${last > 1 ? "s" : ""} to come`;
  const count = data.steps[k - 1].moves.length, said = `${count} message${count === 1 ? "" : "s"}`;
  if (!data.carries) return `${said} without data`;
  const most = (chunks) => (Math.min(...chunks) < Math.max(...chunks) ? "at most " : "") + amount(Math.max(...chunks));
  return `${said}, ${most(leaving[k].map((total, rank) => total - leaving[k - 1][rank]))} from a rank; `
    + `so far ${most(leaving[k])}`;
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
$("speed").onchange = () => { if (playing !== null) toggle(true); $("speed").blur(); };
$("controls").addEventListener("click", (event) => {    // a mouse leaves the keys to the page
  if (event.detail && event.target.closest("button")) event.target.closest("button").blur();
});
$("details").ontoggle = () => fillTable(now);
$("ranks").addEventListener("click", () => { picked = true; routes(now); });

const keys = { ArrowRight: "forward", ArrowLeft: "back", Home: "first", End: "last", " ": "play" };
document.addEventListener("keydown", (event) => {
  const other = event.target.tagName === "SELECT" || event.altKey || event.ctrlKey || event.metaKey;
  if (!(event.key in keys) || other) return;
  if (event.key === " " && event.target.closest("button, summary")) return;  // it presses what has the focus
  event.preventDefault();
  $(keys[event.key]).click();
});

$("slider").max = last;
$("slider").disabled = $("play").disabled = last === 0;
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
