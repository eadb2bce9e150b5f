/* The front page: a drawing, one training step on it, and what the server makes of the numbers. */
import { NAMES, SIDE, drawing, line } from "./drawings.mjs";
import { change, divide, network, noisy, psnr, shows, strongest, train } from "./leak.mjs";

const HIDDEN = 32;
const ACROSS = 8; // units in a line of the server's small pictures
const CLASSES = 10;
const RATE = 0.1;
const NOISE = [0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]; // in units of the update's own size
const CLEAN = 30; // decibels: a unit that comes so close shows one picture alone

const OTHERS = NAMES.slice(1).map(drawing); // the rest of the batch

/** What the server holds and makes of it, for a drawing in a batch: no page in here. */
export function attack(net, picture, batch, ratio) {
  const images = [picture, ...OTHERS.slice(0, batch - 1)];
  const labels = images.map((_, i) => i % CLASSES);
  const sent = train(net, images, labels, RATE);
  const seen = noisy(change(net, sent), ratio, 7);
  const rows = divide(seen);
  const on = rows.filter(Boolean).length;
  const clean = rows.filter((row) => row && images.some((x) => shows(row, x, CLEAN))).length;
  return { seen, rows, on, clean, best: strongest(seen.db) };
}

/** Ink on paper: numbers in [0, 1] as grey pixels at a place of `target`; null is no picture. */
function paint(target, picture, left = 0, top = 0) {
  const pixels = new Uint32Array(target.data.buffer);
  for (let y = 0; y < SIDE; y += 1) {
    for (let x = 0; x < SIDE; x += 1) {
      const ink = picture ? Math.min(1, Math.max(0, picture[y * SIDE + x])) : 0.5;
      const grey = Math.round(255 - 235 * ink);
      pixels[(top + y) * target.width + left + x] =
        ((picture ? 0xff000000 : 0x32000000) | (grey * 0x010101)) >>> 0;
    }
  }
}

const power = (value) => {
  if (!value) return "0";
  const digits = Math.floor(Math.log10(value));
  const raised = String(digits).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
  return `${Math.ceil(value / 10 ** digits)} · 10${raised}`;
};

/** One sentence that says what the server has. */
export function verdict(found, picture, unit, batch, ratio) {
  const row = found.rows[unit];
  if (!picture.some((value) => value > 0)) return "An empty sheet of paper. Draw something.";
  if (!row) return "This unit is off for every picture of the batch and says nothing. Pick another.";
  const decibels = psnr(row, picture);
  if (batch === 1 && !ratio) {
    let worst = 0;
    row.forEach((value, i) => {
      worst = Math.max(worst, Math.abs(value - picture[i]));
    });
    return `No pixel is off by more than ${power(worst)}. One division, nothing guessed.`;
  }
  if (ratio) {
    return `With noise ${ratio} times the size of the update itself, this unit's picture is at ${decibels.toFixed(0)} dB: ${
      decibels < 10 ? "broken" : decibels < 18 ? "a ghost" : "still legible"
    }.`;
  }
  return `${found.clean} of the ${found.on} units that are on show one of the ${batch} pictures alone; the others blend them. Pick a unit.`;
}

/** Bring the demonstration in `root` to life. */
export function start(root) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const [sheet, server, units] = ["sheet", "server", "units"].map(part);
  const [batch, noise, batchText, noiseText] = ["batch", "noise", "batch-text", "noise-text"].map(part);
  const net = network(SIDE * SIDE, HIDDEN, CLASSES, 1);
  const pens = [sheet, server, units].map((canvas) => canvas.getContext("2d"));
  const cell = SIDE + 2;
  let picture = drawing(NAMES[0]);
  let [chosen, shown, wanted, down] = [null, 0, false, false];
  let pen = [SIDE / 2, SIDE / 2];

  const numbers = part("numbers");
  const sample = (dW) => {
    const told = dW.filter(Boolean); // most pixels are paper, and say 0
    const format = (v) => `${v < 0 ? "−" : "+"}${Math.abs(v * 1000).toFixed(3)}`;
    const at = (r, c) => told[(97 * r + 31 * c) % told.length] ?? 0;
    numbers.textContent = Array.from({ length: 13 }, (_, r) =>
      Array.from({ length: 8 }, (_, c) => format(at(r, c))).join(" "),
    ).join("\n");
  };

  const draw = () => {
    wanted = false;
    const [many, ratio] = [Number(batch.value), NOISE[noise.value]];
    const found = attack(net, picture, many, ratio);
    shown = chosen ?? found.best;
    const targets = [[SIDE, SIDE], [SIDE, SIDE], [ACROSS * cell - 2, (HIDDEN / ACROSS) * cell - 2]]
      .map(([w, h]) => new ImageData(w, h));
    paint(targets[0], picture);
    paint(targets[1], found.rows[shown]);
    found.rows.forEach((row, i) => {
      paint(targets[2], row, (i % ACROSS) * cell, Math.floor(i / ACROSS) * cell);
    });
    pens.forEach((context, i) => context.putImageData(targets[i], 0, 0));
    const ring = part("ring");
    ring.style.left = `${(100 * (shown % ACROSS)) / ACROSS}%`;
    ring.style.top = `${(100 * Math.floor(shown / ACROSS)) / (HIDDEN / ACROSS)}%`;
    units.setAttribute("aria-valuenow", shown + 1);
    units.setAttribute("aria-valuetext", `unit ${shown + 1}, ${found.rows[shown] ? "on" : "off"}`);
    batchText.textContent = many === 1 ? "1, yours alone" : `${many}, yours among them`;
    noiseText.textContent = ratio ? `${ratio} × the update` : "none";
    batch.setAttribute("aria-valuetext", batchText.textContent);
    noise.setAttribute("aria-valuetext", noiseText.textContent);
    part("unit").textContent = `row ${shown + 1} ÷ bias ${shown + 1}`;
    sample(found.seen.dW);
    part("verdict").textContent = verdict(found, picture, shown, many, ratio);
  };
  const renew = () => {
    if (!wanted) requestAnimationFrame(draw);
    wanted = true;
  };

  const showPen = () => {
    const mark = part("pen");
    mark.style.left = `${(100 * pen[0]) / SIDE}%`;
    mark.style.top = `${(100 * pen[1]) / SIDE}%`;
    mark.classList.toggle("down", down);
  };
  const at = (event, canvas, width, height) => {
    const box = canvas.getBoundingClientRect();
    return [
      ((event.clientX - box.left) * width) / box.width,
      ((event.clientY - box.top) * height) / box.height,
    ];
  };
  const to = (place) => {
    line(picture, pen, place);
    pen = place;
    chosen = null;
    renew();
  };
  sheet.addEventListener("pointerdown", (event) => {
    sheet.setPointerCapture(event.pointerId);
    pen = at(event, sheet, SIDE, SIDE);
    to(pen);
  });
  sheet.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    for (const step of event.getCoalescedEvents?.() ?? [event]) to(at(step, sheet, SIDE, SIDE));
  });
  const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  sheet.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (event.key === " ") {
      down = !down;
      if (down) to(pen);
    } else if (move) {
      const place = pen.map((value, i) => Math.min(SIDE - 0.5, Math.max(0.5, value + move[i])));
      if (down) to(place);
      pen = place;
    } else return;
    event.preventDefault();
    showPen();
  });
  sheet.addEventListener("focus", showPen);

  const choose = (unit) => {
    chosen = Math.min(HIDDEN - 1, Math.max(0, unit));
    renew();
  };
  const point = (event) => {
    if (event.type === "pointermove" && event.pointerType === "touch" && !event.buttons) return;
    const [x, y] = at(event, units, ACROSS, HIDDEN / ACROSS).map(Math.floor);
    choose(Math.min(ACROSS - 1, Math.max(0, x)) + ACROSS * Math.max(0, y));
  };
  units.addEventListener("pointerdown", point);
  units.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    choose(shown + move[0] + ACROSS * move[1]);
  });

  let next = 0;
  const take = (fresh) => {
    [picture, chosen, pen, down] = [fresh, null, [SIDE / 2, SIDE / 2], false];
    showPen();
    renew();
  };
  part("clear").addEventListener("click", () => take(new Float64Array(SIDE * SIDE)));
  part("another").addEventListener("click", () => {
    next = (next + 1) % NAMES.length;
    take(drawing(NAMES[next]));
  });
  for (const slider of [batch, noise]) {
    slider.addEventListener("input", () => {
      chosen = null;
      renew();
    });
  }
  noise.max = NOISE.length - 1;
  part("count").textContent = Object.values(net)
    .reduce((sum, values) => sum + values.length, 0)
    .toLocaleString("en");
  draw();
  root.dataset.ready = Math.round(performance.now());
}

if (typeof document !== "undefined") {
  for (const root of document.querySelectorAll(".leak")) start(root);
}
