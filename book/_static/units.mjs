/* Chapter 2's playground: every hidden unit's row divided by its bias, clean or blended. */
import { active, change, divide, network, train } from "./leak.mjs";
import { drawing, NAMES, SIDE } from "./drawings.mjs";
import { animated, everywhere, hold, keys, pen, within } from "./canvas.mjs";

const [COLUMNS, ROWS] = [16, 8];
const HIDDEN = COLUMNS * ROWS;

/** What a server divides out of one step on the first `count` drawings, and who passed each unit. */
export function leak(count, seed = 4) {
  const net = network(SIDE * SIDE, HIDDEN, 10, seed);
  const images = NAMES.slice(0, count).map(drawing);
  const labels = images.map((_, n) => n % 10);
  const passed = images.map((x) => active(net, x));
  const through = Array.from({ length: HIDDEN }, (_, i) =>
    passed.flatMap((units, n) => (units[i] ? [n] : [])));
  return { through, rows: divide(change(net, train(net, images, labels, 0.1))) };
}

/** One unit in a sentence. */
export function said(names, unit) {
  if (names.length === 0) return `Unit ${unit}: no drawing passes, and the unit says nothing.`;
  if (names.length === 1) return `Unit ${unit}: only ${names[0]} passes, and the division returns it exactly.`;
  const list = `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
  return `Unit ${unit}: ${list} pass, and the division returns a blend of them.`;
}

function start(root, part) {
  const [grid, picture] = [part("grid"), part("picture")];
  const { context, colour, clear } = pen(grid, root);
  const shown = picture.getContext("2d");
  const state = { count: 4, unit: -1 };
  let found = leak(state.count);
  const [w, h] = [grid.width / COLUMNS, grid.height / ROWS];

  const drawPicture = (row) => {
    const image = shown.createImageData(SIDE, SIDE);
    for (let j = 0; j < SIDE * SIDE; j += 1) {
      const grey = row ? 255 * (1 - within(row[j], 0, 1)) : 235;
      image.data.set([grey, grey, grey, 255], 4 * j);
    }
    shown.putImageData(image, 0, 0);
  };
  const draw = () => {
    clear();
    found.through.forEach((who, i) => {
      const [x, y] = [(i % COLUMNS) * w, Math.floor(i / COLUMNS) * h];
      const fill = [null, colour("--sees"), "#e69f00"][Math.min(who.length, 2)];
      context.globalAlpha = who.length > 1 ? 0.25 + (0.75 * who.length) / state.count : 1;
      if (fill) {
        context.fillStyle = fill;
        context.fillRect(x + 4, y + 4, w - 8, h - 8);
      }
      context.globalAlpha = 1;
      Object.assign(context, { strokeStyle: colour("--line"), lineWidth: i === state.unit ? 6 : 1 });
      context.strokeRect(x + 4, y + 4, w - 8, h - 8);
    });
    drawPicture(found.rows[state.unit]);
    const by = (test) => found.through.filter((who) => test(who.length)).length;
    part("clean").textContent = by((n) => n === 1);
    part("blended").textContent = by((n) => n > 1);
    part("silent").textContent = by((n) => n === 0);
    part("count").value = state.count;
    part("count-text").textContent = state.count;
    part("sentence").textContent = said(found.through[state.unit].map((n) => NAMES[n]), state.unit + 1);
  };
  const renew = animated(draw);
  const choose = (unit) => {
    state.unit = within(unit, 0, HIDDEN - 1);
    renew();
  };
  const clean = () => Math.max(0, found.through.findIndex((who) => who.length === 1));
  const at = (a, b) =>
    choose(within(Math.floor(a * COLUMNS), 0, COLUMNS - 1) + COLUMNS * within(Math.floor(b * ROWS), 0, ROWS - 1));
  hold(grid, at);
  grid.addEventListener("pointermove", (event) => {
    const box = grid.getBoundingClientRect();
    if (event.pointerType === "mouse") at((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  });
  keys(grid, (x, y) => choose(state.unit + x - COLUMNS * y));
  part("count").addEventListener("input", () => {
    state.count = Number(part("count").value);
    found = leak(state.count);
    renew();
  });
  state.unit = clean();
  draw();
}

everywhere(".units", start);
