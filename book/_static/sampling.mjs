/* Chapter 9's playground: how an interval shrinks with clients, paired and not. */
import { uniform } from "./leak.mjs";
import { animated, everywhere, pen } from "./canvas.mjs";

// Student's 97.5 % quantiles for 1, 2, ... degrees of freedom
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
  2.131, 2.12, 2.11, 2.101, 2.093, 2.086,
];

/** The quantile for any number of degrees of freedom, linear in its reciprocal. */
export function quantile(df) {
  if (df >= T.length) return 1.96 + ((T[T.length - 1] - 1.96) * T.length) / df;
  const low = Math.max(1, Math.floor(df));
  const high = Math.min(T.length, low + 1);
  const share = low === high ? 0 : (1 / low - 1 / Math.max(df, 1)) / (1 / low - 1 / high);
  return T[low - 1] + share * (T[high - 1] - T[low - 1]);
}

const mean = (values) => values.reduce((a, b) => a + b) / values.length;
const variance = (values) => {
  const m = mean(values);
  return values.reduce((sum, v) => sum + (v - m) ** 2, 0) / (values.length - 1);
};

/** Mean difference and half its 95 % interval, from differences on the same clients. */
export function paired(a, b) {
  const gaps = a.map((v, i) => v - b[i]);
  return [mean(gaps), quantile(gaps.length - 1) * Math.sqrt(variance(gaps) / gaps.length)];
}

/** The same from two groups of clients, after Welch. */
export function welch(a, b) {
  const [p, q] = [variance(a) / a.length, variance(b) / b.length];
  const df = (p + q) ** 2 / (p ** 2 / (a.length - 1) + q ** 2 / (b.length - 1));
  return [mean(a) - mean(b), quantile(df) * Math.sqrt(p + q)];
}

/** The numbers from 0 to n - 1 in a random order. */
export function shuffled(n, draw) {
  const order = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i -= 1) {
    const j = Math.floor(draw() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

const NUMBER = (v) => v.toFixed(1).replace("-", "−");

function start(root, part) {
  const held = JSON.parse(document.querySelector("script.clients").textContent);
  const canvas = part("chart");
  const { context, colour, stroke, dot, write, clear } = pen(canvas, root);
  const most = held.more.length;
  const state = { clients: 5, seed: 1 };
  part("clients").max = most;

  const intervals = () => {
    const draw = uniform(state.seed);
    const [one, two] = [shuffled(most, draw), shuffled(most, draw)];
    const pick = (values, order, n) => order.slice(0, n).map((i) => values[i]);
    return Array.from({ length: most - 1 }, (_, k) => k + 2).map((n) => ({
      n,
      paired: paired(pick(held.more, one, n), pick(held.less, one, n)),
      apart: welch(pick(held.more, one, n), pick(held.less, two, n)),
    }));
  };
  const [LOW, HIGH] = [-14, 22];
  const at = (n, value) => [
    110 + ((canvas.width - 150) * (n - 2)) / (most - 2),
    canvas.height - 50 - ((canvas.height - 70) * (value - LOW)) / (HIGH - LOW),
  ];
  const bar = (n, [middle, half], style, shift, strong) => {
    const [top, bottom] = [at(n, Math.min(middle + half, HIGH)), at(n, Math.max(middle - half, LOW))];
    context.globalAlpha = strong ? 1 : 0.35;
    stroke([[top[0] + shift, top[1]], [bottom[0] + shift, bottom[1]]], style, strong ? 7 : 4);
    const [x, y] = at(n, middle);
    dot([x + shift, y], style, strong ? 9 : 6);
    context.globalAlpha = 1;
  };
  const draw = () => {
    clear();
    const all = intervals();
    for (const value of [-10, 0, 10, 20]) {
      stroke([at(2, value), at(most, value)], `${colour("--line")}${value ? "33" : "cc"}`, value ? 1 : 2);
      write(`${NUMBER(value).replace(".0", "")} dB`, [84, at(2, value)[1] + 7], colour("--ink"), 18, "right");
    }
    for (const { n, paired: same, apart } of all) {
      if (n > state.clients) continue;
      bar(n, apart, "#e69f00", -9, n === state.clients);
      bar(n, same, colour("--sees"), 9, n === state.clients);
      write(`${n}`, [at(n, LOW)[0], canvas.height - 18], colour("--ink"), 18, "center");
    }
    const now = all.find(({ n }) => n === state.clients);
    const told = ([m, h]) =>
      `${NUMBER(m)} [${NUMBER(m - h)}, ${NUMBER(m + h)}] dB, ${m - h > 0 || m + h < 0 ? "clear of zero" : "which includes zero"}`;
    part("sentence").textContent =
      `${held.name}, ${state.clients} clients. The same for both attacks: ${told(now.paired)}. Others for each: ${told(now.apart)}.`;
    part("clients").value = state.clients;
    part("clients-text").textContent = state.clients;
    canvas.setAttribute("aria-label", part("sentence").textContent);
  };
  const renew = animated(draw);
  part("clients").addEventListener("input", () => {
    state.clients = Number(part("clients").value);
    renew();
  });
  part("again").addEventListener("click", () => {
    state.seed += 1;
    renew();
  });
  draw();
}

everywhere(".sampling", start);
