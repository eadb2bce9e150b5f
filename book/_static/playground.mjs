/* Chapter 5's playground: drag the start, stop the clock, slide along the segment. */
import { animated, everywhere, hold, keys, pen, within } from "./canvas.mjs";
import {
  LOSSES, across, between, cosineAt, crossings, descent, flow, judge, parallel, proof, update,
} from "./flow.mjs";

/* The first state is the walk of the chapter's first figure. */
const FIRST = { loss: "bowl", conditioning: 1 / 0.15, turn: 0, x: 2, y: 2, time: 6, alpha: 0, rate: 0, noise: 0 };
const STARTS = { bowl: [2, 2], convex: [2, 2], valley: [0, 0] };

/** The state in an address's fragment, as `#play=loss:bowl,turn:30`; what is missing stays. */
export function read(fragment) {
  const state = { ...FIRST };
  const text = new URLSearchParams(fragment.replace(/^#/, "")).get("play") ?? "";
  for (const [key, value] of text.split(",").map((pair) => pair.split(":"))) {
    if (key === "loss" && value in LOSSES) state.loss = value;
    else if (key in FIRST && Number.isFinite(Number.parseFloat(value))) state[key] = Number(value);
  }
  return state;
}

/** The fragment of a state: only what differs from the first. */
export function write(state) {
  const pairs = Object.entries(state).filter(([key, value]) => FIRST[key] !== value);
  return pairs.length ? `#play=${pairs.map(([k, v]) => `${k}:${typeof v === "number" ? +v.toFixed(3) : v}`).join(",")}` : "";
}

const APART = 4; // pixels between two places at which the loss is computed

/** The loss at every fourth pixel of every fourth line. A loop of its own: another loss is compiled anew. */
function sampled(land, width, height, coarse) {
  const [left, right, bottom, top] = land.box;
  const point = [0, 0];
  for (let j = 0, k = 0; j <= height; j += APART) {
    point[1] = top - ((top - bottom) * j) / height;
    for (let i = 0; i <= width; i += APART, k += 1) {
      point[0] = left + ((right - left) * i) / width;
      coarse[k] = land.loss(point);
    }
  }
}

/** At every pixel what lies between its four neighbours of those. */
function spread(coarse, width, height, values) {
  const across = width / APART + 1;
  for (let j = 0, k = 0; j < height; j += 1) {
    const [row, down] = [Math.floor(j / APART) * across, (j % APART) / APART];
    for (let i = 0; i < width; i += 1, k += 1) {
      const [a, aside] = [row + Math.floor(i / APART), (i % APART) / APART];
      const above = coarse[a] + aside * (coarse[a + 1] - coarse[a]);
      const below = coarse[a + across] + aside * (coarse[a + across + 1] - coarse[a + across]);
      values[k] = above + down * (below - above);
    }
  }
}

const kept = {};

/** What one drawing of the level lines needs, kept for the next: no garbage while a reader drags. */
function sheet(width, height) {
  if (kept.image?.width !== width || kept.image?.height !== height) {
    kept.image = new ImageData(width, height);
    kept.coarse = new Float64Array((width / APART + 1) * (height / APART + 1) + 1);
    kept.values = new Float32Array(width * height);
    kept.level = new Float32Array(width * height);
  }
  return kept;
}

const [HALF, DARK] = [0.75, 100]; // of a level line: half its width in pixels, and how opaque it is

/** Level lines of a loss in one colour, with soft edges: the page shows them smaller than they are drawn. */
function contours(land, width, height, colour) {
  const { image, coarse, values, level } = sheet(width, height);
  const pixels = new Uint32Array(image.data.buffer).fill(0);
  const [ink] = new Uint32Array(new Uint8ClampedArray([...colour, 0]).buffer);
  sampled(land, width, height, coarse);
  spread(coarse, width, height, values);
  let least = Infinity;
  for (let k = 0; k < values.length; k += 1) if (values[k] < least) least = values[k];
  for (let k = 0; k < level.length; k += 1) level[k] = 5 * Math.sqrt(values[k] - least);
  for (let k = width; k < level.length; k += 1) {
    const near = Math.round(level[k]);
    const away = Math.abs(level[k] - near);
    const dx = level[k] - level[k - 1];
    const dy = level[k] - level[k - width];
    const slope = Math.sqrt(dx * dx + dy * dy); // levels in a pixel: away / slope is a distance in pixels
    if (near && away < (HALF + 0.5) * slope && k % width) {
      pixels[k] = ink | ((DARK * Math.min(1, HALF + 0.5 - away / slope)) << 24);
    }
  }
  return image;
}

function start(root, part) {
  const [plane, graph] = [part("plane"), part("graph")];
  const [paper, chart] = [pen(plane, root), pen(graph, root)];
  const { colour } = paper;
  const state = read(location.hash);
  const sliders = ["conditioning", "turn", "time", "alpha", "rate", "noise"];
  let [ground, drawnFor, step] = [null, "", 0]; // step: how far the proof has been walked through

  const place = (land, [x, y], w = plane.width, h = plane.height) => {
    const [left, right, bottom, top] = land.box;
    return [(w * (x - left)) / (right - left), (h * (top - y)) / (top - bottom)];
  };
  const drawPlane = (land, path, found) => {
    const ink = colour("--line");
    const key = [state.loss, state.conditioning, state.turn, ink].join();
    if (key !== drawnFor) {
      const channels = ink.match(/[\da-f]{2}/gi).map((two) => Number.parseInt(two, 16));
      [ground, drawnFor] = [contours(land, plane.width, plane.height, channels), key];
    }
    const { stroke, dot } = paper;
    paper.context.putImageData(ground, 0, 0);
    stroke(path.map((w) => place(land, w)), colour("--ink"), state.rate ? 2 : 4);
    if (state.rate) {
      const grey = colour("--ink");
      path.forEach((w) => dot(place(land, w), grey, 3));
    }
    const [from, to] = [path[0], path[path.length - 1]].map((w) => place(land, w));
    // A walk that runs away would have a million dashes, all but a few of them off the page.
    const share = Math.min(1, 2000 / Math.hypot(to[0] - from[0], to[1] - from[1]));
    const seen = from.map((x, k) => x + share * (to[k] - x));
    stroke([from, seen], colour("--sees"), 3, [10, 7]);
    for (const alpha of found) dot(place(land, between(path, alpha)), "#e69f00", 9);
    const here = between(path, state.alpha);
    const [gx, gy] = land.gradient(here);
    const [foot, size] = [place(land, here), Math.hypot(gx, gy) || 1];
    paper.arrow(foot, [foot[0] - (60 * gx) / size, foot[1] + (60 * gy) / size], "#d55e00");
    dot(place(land, path[0]), colour("--sees"), 11);
    dot(place(land, path[path.length - 1]), "#ffffff", 7);
  };
  const drawProof = (land, path) => {
    const { stroke, dot } = paper;
    const far = [between(path, -9), between(path, 10)].map((w) => place(land, w));
    stroke(far, colour("--sees"), 1.5, [3, 6]);
    const back = crossings(path);
    const shown = [0, ...(step > 2 ? [back[0].alpha] : [])];
    for (const alpha of shown.slice(0, step)) {
      const g = across(land.gradient, path, alpha);
      const [foot, size] = [place(land, between(path, alpha)), Math.hypot(...g) || 1];
      paper.arrow(foot, [foot[0] - (45 * g[0]) / size, foot[1] + (45 * g[1]) / size], "#cc79a7", 5, 12);
    }
    if (step < 3) return;
    back.slice(0, -1).forEach(({ alpha }, i) => {
      const at = place(land, between(path, alpha));
      dot(at, "#cc79a7", 8);
      if (i === back.length - 2 && i > 0) dot(at, "#ffffff", 4);
    });
  };
  const drawGraph = (land, path, found) => {
    const at = (alpha, value) => [graph.width * (0.02 + 0.96 * alpha), graph.height * (0.5 - 0.44 * value)];
    const { stroke, dot } = chart;
    chart.clear();
    const say = (text, alpha, value, side) => {
      const [x, y] = at(alpha, value);
      chart.write(text, [x, y + (value > 0 ? 27 : -7)], colour("--ink"), graph.clientWidth < 500 ? 19 : 15, side);
    };
    for (const value of [-1, 0, 1]) {
      stroke([at(0, value), at(1, value)], `${colour("--line")}55`, 1);
      say(`cosine ${value}`.replace("-", "−"), 0.5, value, "center");
    }
    say("α = 0", 0.01, -1, "left");
    say("α = 1", 0.99, -1, "right");
    const alphas = Array.from({ length: 201 }, (_, i) => i / 200);
    stroke(alphas.map((a) => at(a, cosineAt(land.gradient, path, a))), colour("--sees"), 4);
    stroke([at(state.alpha, -1.1), at(state.alpha, 1.1)], colour("--line"), 2);
    for (const a of found) dot(at(a, cosineAt(land.gradient, path, a)), "#e69f00", 8);
    dot(at(state.alpha, cosineAt(land.gradient, path, state.alpha)), "#d55e00", 7);
  };

  const draw = () => {
    const land = LOSSES[state.loss](state);
    const from = [state.x, state.y];
    const path = state.rate
      ? descent(land.gradient, from, state.time, state.rate, state.noise)
      : flow(land.gradient, from, state.time);
    const length = Math.hypot(...update(path));
    const moved = length > 1e-9 && length < 1000;
    const found = moved ? parallel(land.gradient, path) : [];
    drawPlane(land, path, found);
    drawGraph(land, path, found);
    const value = cosineAt(land.gradient, path, state.alpha);
    const texts = {
      conditioning: `${+state.conditioning.toFixed(2)}`,
      turn: `${state.turn}°`,
      time: state.time.toFixed(1),
      alpha: `${state.alpha.toFixed(2)}${moved ? `, cosine ${value.toFixed(3)}` : ""}`,
      rate: state.rate ? `${state.rate.toFixed(2)}, ${path.length - 1} steps` : "0, a flow",
      noise: state.noise.toFixed(2),
    };
    for (const name of sliders) {
      part(name).value = state[name];
      part(`${name}-text`).textContent = texts[name];
      part(name).setAttribute("aria-valuetext", texts[name]);
    }
    part("loss").value = state.loss;
    part("conditioning").disabled = state.loss !== "bowl";
    part("turn").disabled = state.loss === "valley";
    part("noise").disabled = !state.rate;
    const lines = moved ? proof(land, path, !state.rate) : [];
    if (step > lines.length) step = 0;
    if (step) drawProof(land, path);
    part("proof").disabled = !lines.length;
    part("proof").textContent = step === lines.length && step ? "Leave the proof" : step ? "Next step" : "Walk through the proof";
    part("sentence").textContent = step ? lines[step - 1] : judge(land, path, !state.rate);
    plane.setAttribute("aria-label", `The plane; start at ${state.x.toFixed(1)}, ${state.y.toFixed(1)}. Arrow keys move it.`);
    history.replaceState(null, "", write(state) || location.pathname + location.search);
  };
  const soon = animated(draw);
  const renew = (changes) => {
    Object.assign(state, changes);
    soon();
  };
  const move = (x, y) => {
    const [left, right, bottom, top] = LOSSES[state.loss](state).box;
    renew({ x: within(x, left, right), y: within(y, bottom, top) });
  };
  hold(plane, (a, b) => {
    const [left, right, bottom, top] = LOSSES[state.loss](state).box;
    move(left + a * (right - left), top - b * (top - bottom));
  });
  hold(graph, (a) => renew({ alpha: within((a - 0.02) / 0.96, 0, 1) }));
  keys(plane, (x, y) => move(state.x + 0.1 * x, state.y + 0.1 * y));
  for (const name of sliders) {
    part(name).addEventListener("input", () => renew({ [name]: Number(part(name).value) }));
  }
  part("proof").addEventListener("click", () => {
    step = (step + 1) % 5;
    soon();
  });
  part("loss").addEventListener("change", () => {
    const [x, y] = STARTS[part("loss").value];
    renew({ loss: part("loss").value, x, y });
  });
  draw();
}

everywhere(".playground", start);
