/* The smaller playgrounds in numbers: rankings, clean units, turned points, intervals. */
import assert from "node:assert/strict";
import test from "node:test";
import { measures, RIVAL, TRUE, verdict } from "../../book/_static/arrows.mjs";
import { paired, quantile, shuffled, welch } from "../../book/_static/sampling.mjs";
import { seen, shares } from "../../book/_static/turning.mjs";
import { leak, said } from "../../book/_static/units.mjs";
import { drawing, NAMES } from "../../book/_static/drawings.mjs";
import { uniform } from "../../book/_static/leak.mjs";

const close = (a, b, by = 1e-9) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`);

test("distance and angle rank two dummies, and can disagree", () => {
  assert.match(verdict(TRUE), /agree: yours/);
  assert.match(verdict([-0.5, 3]), /agree: the other/);
  assert.match(verdict(TRUE.map((v) => 4 * v)), /by distance the other is nearer, by angle yours/);
  assert.match(verdict([0, 0]), /no direction/);
  close(measures(TRUE.map((v) => 2 * v)).angle, 0, 1e-4);
  close(measures([TRUE[0], TRUE[1] + 2]).distance, 4);
});

test("a unit that one drawing passes returns it; one that none passes says nothing", () => {
  const { through, rows } = leak(4);
  const clean = through.flatMap((who, i) => (who.length === 1 ? [[i, who[0]]] : []));
  assert.ok(clean.length > 5);
  for (const [i, n] of clean) drawing(NAMES[n]).forEach((v, j) => close(rows[i][j], v, 1e-6));
  through.forEach((who, i) => assert.equal(rows[i] === null, who.length === 0));
  assert.equal(leak(1).through.filter((who) => who.length > 1).length, 0);
  assert.match(said(["a", "b", "c"], 1), /a, b and c pass/);
});

test("turning keeps lengths, and from the edge a plane is a line", () => {
  const point = [1, 2, 3];
  close(Math.hypot(...seen(point, 0.7, 0.4)), Math.hypot(...point));
  close(seen([1, 2, 0], 0.7, Math.PI / 2)[1], 0);
  assert.deepEqual(seen(point, 0, 0), point);
  const found = shares([[3, 0, 0], [0, 4, 0]], 50);
  [9 / 50, 25 / 50, 25 / 50].forEach((v, k) => close(found[k], v));
});

test("intervals are Student's and Welch's", () => {
  // scipy.stats.t.ppf(0.975, df) for 1, 2.5, 9, 15.3, 40
  [[1, 12.706], [2.5, 3.575], [9, 2.262], [15.3, 2.128], [40, 2.021]].forEach(([df, q]) =>
    close(quantile(df), q, 0.03 * q));
  const [a, b] = [[3, 5, 7, 9], [1, 4, 4, 7]];
  const [m, h] = paired(a, b);
  close(m, 2);
  close(h, 3.182 * Math.sqrt(2 / 3 / 4), 1e-9);
  const [d, w] = welch(a, b);
  close(d, 2);
  assert.ok(w > h, "pairs share what the clients have in common");
  assert.deepEqual([...shuffled(9, uniform(2))].sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
});
