/* Chapter 6's playground: a client's path in its three leading directions, to be turned by hand. */
import { animated, everywhere, orbit, pen } from "./canvas.mjs";

/** The point [x, y, z] seen after turning by `yaw` about the third axis, then tipping by `pitch`. */
export function seen([x, y, z], yaw, pitch) {
  const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  const [across, away] = [cy * x - sy * y, sy * x + cy * y];
  return [across, cp * away - sp * z, sp * away + cp * z];
}

/** The share of the points' squared length in the first one, two and three directions. */
export function shares(points, total) {
  let sum = 0;
  return [0, 1, 2].map((k) => {
    sum += points.reduce((all, p) => all + p[k] * p[k], 0);
    return sum / total;
  });
}

const ABOVE = { yaw: -0.5, pitch: 0 };
const EDGE = { yaw: -0.5, pitch: Math.PI / 2 };

function start(root, part) {
  const held = JSON.parse(document.querySelector("script.walk").textContent);
  const canvas = part("space");
  const { context, colour, stroke, dot, write, clear } = pen(canvas, root);
  const state = { yaw: -0.5, pitch: 1.05, stretch: 1 };
  const reach = Math.max(...held.points.map((p) => Math.hypot(...p)));
  const middle = held.points[held.points.length - 1].map((v) => v / 2);
  const unit = (0.8 * canvas.width) / reach;

  const place = ([x, y, z]) => {
    const centred = [x - middle[0], y - middle[1], state.stretch * (z - middle[2])];
    const [across, up] = seen(centred, state.yaw, state.pitch);
    return [canvas.width / 2 + unit * across, canvas.height / 2 - unit * up];
  };
  const draw = () => {
    clear();
    const [low, high] = [-0.15 * reach, 0.15 * reach];
    const mesh = `${colour("--ink")}99`;
    stroke([[0, low, 0], [reach, low, 0], [reach, high, 0], [0, high, 0]].map(place), mesh, 1.5);
    context.fillStyle = `${colour("--ink")}1f`;
    context.fill();
    for (let i = 0; i <= 10; i += 1) {
      const along = (reach * i) / 10;
      stroke([place([along, low, 0]), place([along, high, 0])], mesh, 1.5);
    }
    for (let i = 0; i <= 3; i += 1) {
      const side = low + ((high - low) * i) / 3;
      stroke([place([0, side, 0]), place([reach, side, 0])], mesh, 1.5);
    }
    stroke([held.points[0], held.points[held.points.length - 1]].map(place), colour("--sees"), 3, [10, 7]);
    stroke(held.points.map(place), colour("--line"), 4);
    dot(place(held.points[0]), colour("--sees"), 10);
    dot(place(held.points[held.points.length - 1]), "#ffffff", 8);
    write("w₀", place(held.points[0]).map((v, k) => v + (k ? -18 : -10)), colour("--line"), 24, "right");
    write("end", place(held.points[held.points.length - 1]).map((v, k) => v + (k ? 26 : 14)), colour("--line"), 24);
    const [one, two, three] = shares(held.points, held.total).map((v) => `${(100 * v).toFixed(2)}\u00a0%`);
    part("sentence").textContent =
      `Of the path's squared distances from w₀, one direction holds ${one}, two hold ${two}, three ${three}.`;
    part("stretch").value = state.stretch;
    part("stretch-text").textContent = `${state.stretch}×`;
    canvas.setAttribute(
      "aria-label",
      `The path, turned by ${((state.yaw * 180) / Math.PI).toFixed(0)} and tipped by ${((state.pitch * 180) / Math.PI).toFixed(0)} degrees. Arrow keys turn it.`,
    );
  };
  const renew = animated(draw);
  const turn = orbit(canvas, state, renew);
  part("above").addEventListener("click", () => turn(ABOVE.yaw, ABOVE.pitch));
  part("edge").addEventListener("click", () => turn(EDGE.yaw, EDGE.pitch));
  part("stretch").addEventListener("input", () => {
    state.stretch = Number(part("stretch").value);
    renew();
  });
  draw();
}

everywhere(".turning", start);
