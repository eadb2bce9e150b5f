/* Chapter 3's playground: two dummy gradients, and the two ways to say which is nearer. */
import { cosine } from "./leak.mjs";
import { animated, everywhere, hold, keys, pen, within } from "./canvas.mjs";

export const TRUE = [1.5, 0.9];
export const RIVAL = [2.9, 1.35];

/** Squared distance to the true gradient, and the angle to it in degrees. */
export function measures(dummy, truth = TRUE) {
  const distance = dummy.reduce((sum, v, j) => sum + (v - truth[j]) ** 2, 0);
  const angle = (Math.acos(within(cosine(dummy, truth), -1, 1)) * 180) / Math.PI;
  return { distance, angle };
}

/** Which of two dummies is nearer, by distance and by angle, in a sentence. */
export function verdict(yours, rival = RIVAL, truth = TRUE) {
  const [a, b] = [measures(yours, truth), measures(rival, truth)];
  if (Math.hypot(...yours) < 1e-9) return "An arrow without length has no direction.";
  const [near, turned] = [a.distance < b.distance, a.angle < b.angle];
  const who = (first) => (first ? "yours" : "the other");
  if (near === turned) return `Both agree: ${who(near)} is nearer.`;
  return `They disagree: by distance ${who(near)} is nearer, by angle ${who(turned)}.`;
}

const SCALE = 150; // pixels to a unit
const ORIGIN = [150, 400];

function start(root, part) {
  const canvas = part("plane");
  const { context, colour, arrow, dot, write, clear } = pen(canvas, root);
  const state = { yours: [0.7, 0.75] };
  const place = ([x, y]) => [ORIGIN[0] + SCALE * x, ORIGIN[1] - SCALE * y];

  const draw = () => {
    clear();
    const rival = measures(RIVAL);
    // where distance prefers yours: a disc around the truth; where the angle does: a wedge
    context.globalAlpha = 0.13;
    context.fillStyle = colour("--sees");
    context.beginPath();
    context.arc(...place(TRUE), SCALE * Math.sqrt(rival.distance), 0, 2 * Math.PI);
    context.fill();
    context.fillStyle = "#e69f00";
    context.globalAlpha = 0.2;
    context.beginPath();
    const toward = Math.atan2(TRUE[1], TRUE[0]);
    const half = (rival.angle * Math.PI) / 180;
    context.moveTo(...ORIGIN);
    context.lineTo(...place([7 * Math.cos(toward - half), 7 * Math.sin(toward - half)]));
    context.lineTo(...place([7 * Math.cos(toward + half), 7 * Math.sin(toward + half)]));
    context.fill();
    context.globalAlpha = 1;
    arrow(ORIGIN, place(TRUE), colour("--ink"), 6);
    arrow(ORIGIN, place(RIVAL), colour("--line"), 4);
    arrow(ORIGIN, place(state.yours), "#d55e00", 6);
    dot(place(state.yours), "#d55e00", 11);
    write("the client's", [place(TRUE)[0] - 6, place(TRUE)[1] - 14], colour("--ink"), 22, "right");
    write("the other", [place(RIVAL)[0] + 30, place(RIVAL)[1] + 40], colour("--line"), 22, "center");
    const [x, y] = place(state.yours); // its name stands on the side away from the client's arrow
    const left = TRUE[0] * state.yours[1] > TRUE[1] * state.yours[0];
    write("yours", left ? [x - 26, y + 6] : [x + 16, y + 22], "#d55e00", 22, left ? "right" : "left");
    for (const [name, dummy] of [["yours", state.yours], ["other", RIVAL]]) {
      const { distance, angle } = measures(dummy);
      part(`${name}-distance`).textContent = distance.toFixed(2);
      part(`${name}-angle`).textContent = Number.isNaN(angle) ? "–" : `${angle.toFixed(0)}°`;
    }
    part("sentence").textContent = verdict(state.yours);
    canvas.setAttribute(
      "aria-label",
      `Your arrow ends at ${state.yours.map((v) => v.toFixed(1)).join(", ")}. Arrow keys move it.`,
    );
  };
  const renew = animated(draw);
  const move = (x, y) => {
    state.yours = [within(x, -0.9, 3.7), within(y, -0.9, 2.5)];
    renew();
  };
  hold(canvas, (a, b) =>
    move((a * canvas.width - ORIGIN[0]) / SCALE, (ORIGIN[1] - b * canvas.height) / SCALE));
  keys(canvas, (x, y) => move(state.yours[0] + 0.1 * x, state.yours[1] + 0.1 * y));
  draw();
}

everywhere(".arrows", start);
