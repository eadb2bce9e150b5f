/* Chapter 5 in numbers: losses on the plane, the flow down them, and where on the segment between its
   ends the gradient is parallel to the update. */
import { cosine, normal } from "./leak.mjs";

/** Coordinates along axes that are turned by an angle in degrees, and back. */
function turned(degrees) {
  const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return {
    to: ([x, y]) => [c * x + s * y, c * y - s * x],
    from: ([p, q]) => [c * p - s * q, c * q + s * p],
  };
}

/** Each loss with its gradient, whether it is convex, and the part of the plane to show. */
export const LOSSES = {
  bowl: ({ conditioning, turn }) => {
    const { to, from } = turned(turn);
    return {
      convex: true,
      box: [-3, 3, -2.25, 2.25],
      loss: (w) => (([p, q]) => (p * p + (q * q) / conditioning) / 2)(to(w)),
      gradient: (w) => (([p, q]) => from([p, q / conditioning]))(to(w)),
    };
  },
  convex: ({ turn }) => {
    const { to, from } = turned(turn);
    return {
      convex: true,
      box: [-3, 3, -2.25, 2.25],
      loss: (w) => (([p, q]) => Math.log(Math.cosh(2 * p)) + q ** 4 / 40 + (q * q) / 20)(to(w)),
      gradient: (w) => (([p, q]) => from([2 * Math.tanh(2 * p), q ** 3 / 10 + q / 10]))(to(w)),
    };
  },
  valley: () => ({
    convex: false,
    box: [-1.2, 7.8, -3.375, 3.375],
    loss: ([x, y]) => -x + 3 * (y - Math.sin(x)) ** 2,
    gradient: ([x, y]) => [-1 - 6 * (y - Math.sin(x)) * Math.cos(x), 6 * (y - Math.sin(x))],
  }),
};

const along = (w, k, length) => [w[0] + length * k[0], w[1] + length * k[1]];

/** The gradient flow, by the fourth-order Runge-Kutta method. */
export function flow(gradient, start, time, steps = 400) {
  const [path, h] = [[start], -time / steps];
  for (let i = 0; i < steps; i += 1) {
    const w = path[i];
    const a = gradient(w);
    const b = gradient(along(w, a, h / 2));
    const c = gradient(along(w, b, h / 2));
    const d = gradient(along(w, c, h));
    path.push([0, 1].map((j) => w[j] + (h / 6) * (a[j] + 2 * b[j] + 2 * c[j] + d[j])));
  }
  return path;
}

/** Descent with steps of a size that one sees, and noise on each gradient. */
export function descent(gradient, start, time, rate, noise = 0, seed = 3) {
  const [path, draw] = [[start], normal(seed)];
  for (let i = 0; i < Math.max(1, Math.round(time / rate)); i += 1) {
    const g = gradient(path[i]).map((value) => value + noise * draw());
    path.push(along(path[i], g, -rate));
  }
  return path;
}

/** The point w_alpha of the segment from the first to the last point of a path. */
export function between(path, alpha) {
  const [w0, end] = [path[0], path[path.length - 1]];
  return w0.map((value, j) => value + alpha * (end[j] - value));
}

/** The update, w0 - wT. */
export function update(path) {
  return path[0].map((value, j) => value - path[path.length - 1][j]);
}

/** All alpha with a gradient parallel to the update: sign changes of their cross product. */
export function parallel(gradient, path, grid = 400) {
  const d = update(path);
  if (straight(gradient, path)) return [];
  const cross = (alpha) => (([x, y]) => d[0] * y - d[1] * x)(gradient(between(path, alpha)));
  const places = Array.from({ length: grid + 1 }, (_, i) => (1 - Math.cos((Math.PI * i) / grid)) / 2);
  const values = places.map(cross);
  const found = [];
  for (let i = 0; i < grid; i += 1) {
    if (values[i] === 0) found.push(places[i]);
    if (values[i] * values[i + 1] >= 0) continue;
    let [low, high] = [places[i], places[i + 1]];
    for (let k = 0; k < 50; k += 1) {
      const middle = (low + high) / 2;
      if (cross(middle) * values[i] > 0) low = middle;
      else high = middle;
    }
    found.push((low + high) / 2);
  }
  return found;
}

/** The cosine between the update and the gradient at w_alpha. */
export function cosineAt(gradient, path, alpha) {
  return cosine(update(path), gradient(between(path, alpha)));
}

/** Whether the walk is straight: then the gradient is parallel all along the segment. */
export function straight(gradient, path) {
  const d = update(path);
  return [0, 0.25, 0.5, 0.75, 1].every((alpha) => {
    const g = gradient(between(path, alpha));
    return Math.abs(d[0] * g[1] - d[1] * g[0]) <= 1e-9 * Math.hypot(...d) * Math.hypot(...g);
  });
}

/** The proposition for this path, in a sentence: true, or with the condition that fails. */
export function judge(land, path, flows) {
  const d = update(path);
  if (!(Math.hypot(...d) < 1000)) return "The steps are too long for this loss: the walk runs away.";
  if (Math.hypot(...d) < 1e-6) return "The walker has not moved: there is no update to compare with.";
  if (straight(land.gradient, path)) return "The walk is straight, and every point of the segment is parallel.";
  const least = Math.min(...path.map((w) => cosine(d, land.gradient(w))).filter((c) => !Number.isNaN(c)));
  const found = parallel(land.gradient, path);
  const values = found.map((alpha) => cosineAt(land.gradient, path, alpha));
  const here = found.length
    ? `${found.length} parallel point${found.length > 1 ? "s" : ""}, cosine ${values.map((v) => (v > 0 ? "+1" : "−1")).join(", ")}`
    : "no parallel point";
  if (!flows) return `These are steps and no flow, so the proposition promises nothing. Here: ${here}.`;
  if (least < -1e-9) {
    return `The walker turns back along the segment (least cosine ${least.toFixed(2)}), so the condition fails and nothing is promised. Here: ${here}.`;
  }
  if (!found.length) return "The condition holds, but the gradient vanishes on the segment, or nearly so: nothing to compare.";
  return `The proposition holds: ${here}${land.convex ? ", and +1 it must be, as the loss is convex" : ""}.`;
}

/** Where a path is on the line through its ends after the start: the time's share and the place alpha. */
export function crossings(path) {
  const d = update(path);
  const size = Math.hypot(...d);
  const height = (w) => ((w[0] - path[0][0]) * d[1] - (w[1] - path[0][1]) * d[0]) / size;
  const place = (w) => ((path[0][0] - w[0]) * d[0] + (path[0][1] - w[1]) * d[1]) / size ** 2;
  const heights = path.map(height);
  const least = 1e-9 * Math.max(...heights.map(Math.abs));
  const found = [];
  for (let i = 1; i < path.length - 1; i += 1) {
    if (Math.abs(heights[i]) < least || heights[i] * heights[i + 1] >= 0) continue;
    const share = heights[i] / (heights[i] - heights[i + 1]);
    const w = [0, 1].map((j) => path[i][j] + share * (path[i + 1][j] - path[i][j]));
    found.push({ time: (i + share) / (path.length - 1), alpha: place(w) });
  }
  return [...found, { time: 1, alpha: 1 }];
}

/** The part of the gradient at w(alpha) that points across the segment. */
export function across(gradient, path, alpha) {
  const d = update(path);
  const [x, y] = gradient(between(path, alpha));
  const share = (x * d[0] + y * d[1]) / (d[0] ** 2 + d[1] ** 2);
  return [x - share * d[0], y - share * d[1]];
}

/** The proof for this walk, one sentence to a step; empty where it has nothing to prove. */
export function proof(land, path, flows) {
  if (!flows || Math.hypot(...update(path)) < 1e-6 || straight(land.gradient, path)) return [];
  const back = crossings(path);
  const [first, last] = [back[0], back[back.length - 2]];
  const where = `${Math.round(100 * first.time)} % of its time, at α = ${first.alpha.toFixed(2)}`;
  const many = back.length > 2 ? ` Its last crossing before the end is at α = ${last.alpha.toFixed(2)}.` : "";
  return [
    "1 of 4. Draw the line through the ends. The proof watches only what happens across it: the short arrows.",
    "2 of 4. At the start the gradient's part across the line says to which side the walk leaves.",
    back.length > 1
      ? `3 of 4, case 2. The walk comes back to the line on its way, first after ${where}.${many} It never turns back along the segment, so the crossing lies on the segment.`
      : "3 of 4, case 1. The walk stays on one side and comes back to the line only at its end.",
    "4 of 4. Where it comes back it moves the other way, so the gradient's part across has changed its sign. Between the start and that place it is zero: there the gradient is parallel to the segment.",
  ];
}
