/* Chapter 5's second panel: a walk around a helix, whose segment has no parallel point. */
import { cosine } from "./leak.mjs";
import { between, update } from "./flow.mjs";
import { seen } from "./turning.mjs";
import { animated, everywhere, orbit, pen } from "./canvas.mjs";

/** The paper's field, as a gradient: going against it from the origin winds up a helix. */
export const gradient = ([, , z]) => [Math.sin(z), -Math.cos(z), -1];

/** The walk's points, from the origin through so many turns. */
export function walk(turns, steps = 200) {
  return Array.from({ length: steps + 1 }, (_, i) => {
    const t = (2 * Math.PI * turns * i) / steps;
    return [Math.cos(t) - 1, Math.sin(t), t];
  });
}

/** The largest cosine on the segment between the update and the gradient. */
export function best(path) {
  const d = update(path);
  return Math.max(...Array.from({ length: 201 }, (_, i) => cosine(d, gradient(between(path, i / 200)))));
}

function start(root, part) {
  const canvas = part("space");
  const { colour, stroke, arrow, dot, clear } = pen(canvas, root);
  const state = { turns: 1, alpha: 0.5, yaw: 0.5, pitch: -1.2 };
  const draw = () => {
    clear();
    const path = walk(state.turns);
    const height = path[path.length - 1][2];
    const unit = Math.min(100, 330 / Math.max(height, 2));
    const place = ([x, y, z]) => {
      const [a, b] = seen([x + 1, y, z - height / 2], state.yaw, state.pitch);
      return [canvas.width / 2 + unit * a, canvas.height / 2 - unit * b];
    };
    stroke(path.map(place), colour("--ink"), 4);
    stroke([path[0], path[path.length - 1]].map(place), colour("--sees"), 3, [10, 7]);
    const here = between(path, state.alpha);
    const down = gradient(here).map((v) => -v);
    arrow(place(here), place(here.map((v, j) => v + 1.2 * down[j])), "#d55e00", 5);
    dot(place(path[0]), colour("--sees"), 10);
    dot(place(path[path.length - 1]), "#ffffff", 7);
    const value = cosine(update(path), gradient(here));
    part("turns-text").textContent = state.turns.toFixed(2);
    part("alpha-text").textContent = `${state.alpha.toFixed(2)}, cosine ${value.toFixed(3)}`;
    for (const name of ["turns", "alpha"]) {
      part(name).value = state[name];
      part(name).setAttribute("aria-valuetext", part(`${name}-text`).textContent);
    }
    const most = best(path);
    part("sentence").textContent =
      `After ${state.turns.toFixed(2)} turns the best cosine anywhere on the segment is ${most.toFixed(most > 0.995 ? 6 : 3)}: no point is parallel.`;
  };
  const renew = animated(draw);
  orbit(canvas, state, renew);
  for (const name of ["turns", "alpha"]) {
    part(name).addEventListener("input", () => {
      state[name] = Number(part(name).value);
      renew();
    });
  }
  draw();
}

everywhere(".helix", start);
