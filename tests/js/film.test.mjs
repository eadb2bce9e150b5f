import assert from "node:assert/strict";
import test from "node:test";
import { nearest, pace } from "../../smelib/viz/film.mjs";

test("the nearest frame is the one at the least distance", () => {
  const frames = [0, 100, 700, 1000].map((at) => ({ at }));
  assert.deepEqual([-50, 49, 51, 420, 990, 5000].map((at) => nearest(frames, at)), [0, 0, 1, 2, 3, 3]);
});

test("a film takes about six seconds, and no frame less than a blink", () => {
  assert.equal(pace(30), 200);
  assert.equal(pace(3), 700);
  assert.equal(pace(400), 80);
});
