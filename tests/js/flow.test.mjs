import assert from "node:assert/strict";
import test from "node:test";
import {
  LOSSES, across, cosineAt, crossings, descent, flow, judge, parallel, proof, update,
} from "../../book/_static/flow.mjs";
import { best, gradient as helix, walk } from "../../book/_static/helix.mjs";
import { read, write } from "../../book/_static/playground.mjs";

const options = { conditioning: 7, turn: 25 };
const bowl = LOSSES.bowl({ conditioning: 4, turn: 0 });

test("a gradient is the slope of its loss", () => {
  for (const [name, make] of Object.entries(LOSSES)) {
    const land = make(options);
    for (const w of [[0.3, -1.2], [1.7, 0.4]]) {
      const slope = [[1e-5, 0], [0, 1e-5]].map(([a, b]) =>
        (land.loss([w[0] + a, w[1] + b]) - land.loss([w[0] - a, w[1] - b])) / 2e-5);
      land.gradient(w).forEach((value, j) => assert.ok(Math.abs(value - slope[j]) < 1e-7, name));
    }
  }
});

test("the flow down a bowl is the exponential", () => {
  const end = flow(bowl.gradient, [2, 1], 3).at(-1);
  assert.ok(Math.abs(end[0] - 2 * Math.exp(-3)) < 1e-8);
  assert.ok(Math.abs(end[1] - Math.exp(-0.75)) < 1e-8);
});

test("descent takes its steps, and in the limit it is the flow", () => {
  assert.equal(descent(bowl.gradient, [2, 1], 3, 0.5).length, 7);
  const [fine, end] = [descent(bowl.gradient, [2, 1], 3, 1e-4), flow(bowl.gradient, [2, 1], 3)];
  fine.at(-1).forEach((value, j) => assert.ok(Math.abs(value - end.at(-1)[j]) < 1e-3));
});

test("a bowl has a parallel point, of cosine 1, and the sentence says so", () => {
  const path = flow(bowl.gradient, [2, 2], 4);
  const found = parallel(bowl.gradient, path);
  assert.equal(found.length, 1);
  assert.ok(Math.abs(cosineAt(bowl.gradient, path, found[0]) - 1) < 1e-9);
  assert.match(judge(bowl, path, true), /holds: 1 parallel point, cosine \+1/);
  assert.match(judge(bowl, path, false), /no flow/);
});

test("a straight walk is parallel everywhere, and said to be", () => {
  for (const y of [0, 1e-17]) {
    const path = flow(bowl.gradient, [2, y], 4);
    assert.deepEqual(parallel(bowl.gradient, path), []);
    assert.match(judge(bowl, path, true), /every point/);
  }
});

test("a walk that runs off is named", () => {
  const land = LOSSES.valley();
  assert.match(judge(land, descent(land.gradient, [0, 2], 12, 1.5), false), /runs away/);
});

test("the valley has both cases of the proof", () => {
  const land = LOSSES.valley();
  const counts = [6, 9].map((time) => parallel(land.gradient, flow(land.gradient, [0, 0], time)).length);
  assert.deepEqual(counts, [1, 2]);
});

test("the fragment keeps the state and survives nonsense", () => {
  const state = { ...read(""), loss: "valley", x: 1.25, time: 9 };
  assert.deepEqual(read(write(state)), state);
  assert.deepEqual(read("#play=loss:mountain,x:NaN,hack:1,time:"), read(""));
  assert.equal(write(read("")), "");
});

test("the proof's crossings lie on the segment, and the gradient's part across has turned", () => {
  const land = LOSSES.valley({});
  const path = flow(land.gradient, [0, 0], 9);
  const back = crossings(path);
  assert.equal(back.length, 2);
  assert.ok(back[0].alpha > 0.4 && back[0].alpha < 0.7);
  const [a, b] = [across(land.gradient, path, 0), across(land.gradient, path, back[0].alpha)];
  assert.ok(a[0] * b[0] + a[1] * b[1] < 0);
  const d = update(path);
  assert.ok(Math.abs(a[0] * d[0] + a[1] * d[1]) < 1e-9 * Math.hypot(...a) * Math.hypot(...d));
  assert.match(proof(land, path, true)[2], /case 2/);
  assert.equal(proof(land, path, false).length, 0, "steps are no flow");
  const bowl = LOSSES.bowl({ conditioning: 7, turn: 0 });
  assert.match(proof(bowl, flow(bowl.gradient, [2, 2], 6), true)[2], /case 1/);
});

test("the helix walks against its field, and a whole turn keeps the cosine at one over root two", () => {
  const [a, b] = walk(1, 100000).slice(500, 502);
  const g = helix(a);
  const h = (2 * Math.PI) / 100000;
  a.forEach((v, j) => assert.ok(Math.abs((v - b[j]) / h - g[j]) < 1e-4));
  assert.ok(Math.abs(best(walk(1)) - Math.SQRT1_2) < 1e-9);
  assert.ok(best(walk(0.1)) < 1 - 1e-6);
});
